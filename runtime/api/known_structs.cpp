#include "api/known_structs.h"

namespace convtranspose {

Status KnownProblem::read(const convt_problem &given) {
    Status status = read_struct("problem", given, &problem);
    attributes.group = 1; // the default of ONNX
    if (status) status = read_optional("attributes", &problem.attributes, &attributes);
    if (status) status = read_optional("quantization", &problem.quantization, &quantization);
    if (status) status = read_optional("post_ops", &problem.post_ops, &post_ops);
    problem.attributes = &attributes;
    problem.post_ops = &post_ops;
    return status;
}

Status KnownOptions::read(const convt_options *given) {
    Status status;
    if (given) status = read_struct("options", *given, &options);
    if (status) status = read_optional("device", &options.device, &device);
    options.device = &device;
    return status;
}

Status KnownArguments::read(const convt_arguments &given) {
    Status status = read_struct("arguments", given, &arguments);
    if (status) status = read_optional("x", &arguments.x, &x);
    if (status) status = read_optional("w", &arguments.w, &w);
    if (status) status = read_optional("b", &arguments.b, &b);
    if (status) status = read_optional("residual", &arguments.residual, &residual);
    if (status) status = read_optional("y", &arguments.y, &y);
    if (status) status = read_optional("quantization", &arguments.quantization, &quantization);
    return status;
}

} // namespace convtranspose
