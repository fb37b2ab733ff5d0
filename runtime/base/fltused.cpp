// Objects for Windows that use floating point, as kernels do, ask for this symbol. Microsoft's C runtime has it; MinGW's, whose
// own compilers do not ask for it, has not.
extern "C" {
extern const int _fltused; // nobody reads it
const int _fltused = 1;
}
