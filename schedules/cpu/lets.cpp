#include "lets.h"

namespace convtranspose {

using namespace Halide;

Expr without_lets(Expr e, const Lets &lets) {
    for (auto let = lets.rbegin(); let != lets.rend(); ++let) e = Internal::substitute(let->first, let->second, e);
    return e;
}

} // namespace convtranspose
