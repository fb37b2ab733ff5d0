// A program that registers the execution provider's library by its path, and runs a model with it:
// register LIBONNXRUNTIME PROVIDER MODEL
// x of the model is 1 x 2 x 3 x 3 ones; y is printed.
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <onnxruntime_c_api.h>

namespace {

constexpr const char *kName = "ConvTransposeExecutionProvider";
const OrtApi *api = nullptr;

void check(OrtStatus *status) {
    if (!status) return;
    std::fprintf(stderr, "%s\n", api->GetErrorMessage(status));
    std::exit(1);
}

const OrtEpDevice *find_device(const OrtEnv *env) {
    const OrtEpDevice *const *devices = nullptr;
    std::size_t count = 0;
    check(api->GetEpDevices(env, &devices, &count));
    for (std::size_t i = 0; i < count; i++) {
        if (std::strcmp(api->EpDevice_EpName(devices[i]), kName) == 0) return devices[i];
    }
    std::fprintf(stderr, "none of %zu devices is called %s\n", count, kName);
    std::exit(1);
}

void run(OrtEnv *env, const char *model) {
    OrtSessionOptions *options = nullptr;
    check(api->CreateSessionOptions(&options));
    const OrtEpDevice *const device = find_device(env);
    const char *const keys[] = {"threads", "explain"}, *const values[] = {"1", "1"};
    check(api->SessionOptionsAppendExecutionProvider_V2(options, env, &device, 1, keys, values, 2));
    OrtSession *session = nullptr;
    check(api->CreateSession(env, model, options, &session));

    OrtMemoryInfo *memory = nullptr;
    check(api->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &memory));
    std::vector<float> x(2 * 3 * 3, 1);
    const std::int64_t shape[] = {1, 2, 3, 3};
    OrtValue *input = nullptr, *output = nullptr;
    check(api->CreateTensorWithDataAsOrtValue(memory, x.data(), x.size() * sizeof(float), shape, 4,
                                              ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &input));
    const char *const input_name = "x", *const output_name = "y";
    const OrtValue *const inputs[] = {input};
    check(api->Run(session, nullptr, &input_name, inputs, 1, &output_name, 1, &output));

    OrtTensorTypeAndShapeInfo *info = nullptr;
    std::size_t size = 0;
    void *data = nullptr;
    check(api->GetTensorTypeAndShape(output, &info));
    check(api->GetTensorShapeElementCount(info, &size));
    check(api->GetTensorMutableData(output, &data));
    for (std::size_t i = 0; i < size; i++) std::printf("%g ", static_cast<double>(static_cast<const float *>(data)[i]));
    std::printf("\n");

    api->ReleaseTensorTypeAndShapeInfo(info);
    api->ReleaseValue(output);
    api->ReleaseValue(input);
    api->ReleaseMemoryInfo(memory);
    api->ReleaseSession(session);
    api->ReleaseSessionOptions(options);
}

} // namespace

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    void *const library = dlopen(argv[1], RTLD_NOW);
    void *const symbol = library ? dlsym(library, "OrtGetApiBase") : nullptr;
    if (!symbol) {
        std::fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    const OrtApiBase *(*get_base)() = nullptr;
    std::memcpy(&get_base, &symbol, sizeof symbol);
    api = get_base()->GetApi(23);
    if (!api) {
        std::fprintf(stderr, "ONNX Runtime %s is too old\n", get_base()->GetVersionString());
        return 1;
    }
    OrtEnv *env = nullptr;
    check(api->CreateEnv(ORT_LOGGING_LEVEL_WARNING, "register", &env));
    check(api->RegisterExecutionProviderLibrary(env, kName, argv[2]));
    run(env, argv[3]);
    check(api->UnregisterExecutionProviderLibrary(env, kName));
    api->ReleaseEnv(env);
    return 0;
}
