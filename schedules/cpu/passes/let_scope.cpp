#include "cpu/passes/let_scope.h"

namespace convtranspose {

using namespace Halide;

Expr without_lets(Expr e, const LetScope &scope) {
    for (auto let = scope.rbegin(); let != scope.rend(); ++let) e = Internal::substitute(let->first, let->second, e);
    return e;
}

} // namespace convtranspose
