// Object files for Windows that use floating point, such as those of kernels, refer to this symbol. Microsoft's C runtime
// defines it. MinGW's does not, because its own compilers do not refer to it.
extern "C" {
extern const int _fltused; // never read
const int _fltused = 1;
}
