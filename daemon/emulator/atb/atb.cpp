// The stand-in for libatb, CANN's library of transformer operations: operations succeed and compute nothing.
// Compiled when an environment is made; one CreateOperation for each kind of operation that its packages ask for is
// put behind it. Clients call through the vtables of these two classes, so their order is a contract: that of
// include/atb/operation.h and context.h of ascend-transformer-boost.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace atb {

using Status = int32_t;
using Stream = void *;
constexpr Status OK = 0;
constexpr Status UNSUPPORTED = 10;

struct TensorDescs;
struct VariantPack;
struct Tensor;

class Context {
public:
    virtual ~Context() = default;
    virtual Status SetExecuteStream(Stream stream) {
        streams_ = {stream};
        return OK;
    }
    virtual Stream GetExecuteStream() const { return streams_.empty() ? nullptr : streams_.front(); }
    virtual Status SetAsyncTilingCopyStatus(bool on) {
        copies_ = on;
        return OK;
    }
    virtual bool GetAsyncTilingCopyStatus() const { return copies_; }
    virtual Status SetExecuteStreams(const std::vector<Stream> &streams) {
        streams_ = streams;
        return OK;
    }
    virtual std::vector<Stream> GetExecuteStreams() { return streams_; }
    virtual Status SetExecuteType(int type) {
        type_ = type;
        return OK;
    }
    virtual int GetExecuteType() { return type_; }
    virtual Status SetL2WorkspaceBuffer(void *, size_t) { return OK; }
    virtual Status SetL2TensorBuffer(void *, size_t) { return OK; }

private:
    std::vector<Stream> streams_;
    bool copies_ = false;
    int type_ = 0;
};

class Operation {
public:
    virtual ~Operation() = default;
    virtual std::string GetName() const { return "Emulated"; }
    // Shapes are the client's to know: torch-npu makes its outputs itself.
    virtual Status InferShape(const TensorDescs &, TensorDescs &) const { return UNSUPPORTED; }
    virtual uint32_t GetInputNum() const { return 0; }
    virtual uint32_t GetOutputNum() const { return 0; }
    virtual Status Setup(const VariantPack &, uint64_t &workspaceSize, Context *) {
        workspaceSize = 0;
        return OK;
    }
    virtual Status Execute(const VariantPack &, uint8_t *, uint64_t, Context *) { return OK; }
};

Status DestroyOperation(Operation *operation) {
    delete operation;
    return OK;
}

Status CreateContext(Context **context) {
    *context = new Context;
    return OK;
}

Status DestroyContext(Context *context) {
    delete context;
    return OK;
}

namespace Utils {
uint64_t GetTensorSize(const Tensor &) { return 0; }
} // namespace Utils

} // namespace atb

static int32_t createOperation(atb::Operation **operation) {
    *operation = new atb::Operation;
    return atb::OK;
}
