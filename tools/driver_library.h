// A driver's library, which is found at run time, so that nothing of it is needed to build.
#ifndef CONVTRANSPOSE_TOOLS_DRIVER_LIBRARY_H_
#define CONVTRANSPOSE_TOOLS_DRIVER_LIBRARY_H_

#include <dlfcn.h>

#include <string>

#include "tools/error.h"

namespace convtranspose::tools {

class DriverLibrary {
  public:
    explicit DriverLibrary(const char *name) : handle_(dlopen(name, RTLD_NOW | RTLD_LOCAL)) {
        if (!handle_) throw Error(std::string("there is no ") + name);
    }

    template<typename F>
    void find(const char *name, F *function) const {
        *function = reinterpret_cast<F>(dlsym(handle_, name));
        if (!*function) throw Error(std::string("the driver has no ") + name);
    }

  private:
    void *const handle_; // kept: drivers do not like to be unloaded
};

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_DRIVER_LIBRARY_H_
