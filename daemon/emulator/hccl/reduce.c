/* Elements: their size, and two buffers of them reduced into one. */
#include "reduce.h"

#include <string.h>

size_t dtypeSize(HcclDataType type) {
    switch (type) {
        case HCCL_DATA_TYPE_INT8:
        case HCCL_DATA_TYPE_UINT8:
        case HCCL_DATA_TYPE_HIF8:
        case HCCL_DATA_TYPE_FP8E4M3:
        case HCCL_DATA_TYPE_FP8E5M2:
        case HCCL_DATA_TYPE_FP8E8M0:
            return 1;
        case HCCL_DATA_TYPE_INT16:
        case HCCL_DATA_TYPE_UINT16:
        case HCCL_DATA_TYPE_FP16:
        case HCCL_DATA_TYPE_BFP16:
            return 2;
        case HCCL_DATA_TYPE_INT32:
        case HCCL_DATA_TYPE_UINT32:
        case HCCL_DATA_TYPE_FP32:
            return 4;
        case HCCL_DATA_TYPE_INT64:
        case HCCL_DATA_TYPE_UINT64:
        case HCCL_DATA_TYPE_FP64:
            return 8;
        case HCCL_DATA_TYPE_INT128:
            return 16;
    }
    return 0;
}

bool reduceSupported(HcclDataType type, HcclReduceOp op) {
    if (op < HCCL_REDUCE_SUM || op > HCCL_REDUCE_MIN) {
        return false;
    }
    switch (type) {
        case HCCL_DATA_TYPE_INT8:
        case HCCL_DATA_TYPE_INT16:
        case HCCL_DATA_TYPE_INT32:
        case HCCL_DATA_TYPE_INT64:
        case HCCL_DATA_TYPE_FP16:
        case HCCL_DATA_TYPE_FP32:
        case HCCL_DATA_TYPE_BFP16:
            return true;
        default:
            return false;
    }
}

static uint32_t floatBits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float bitsFloat(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float bf16ToFloat(uint16_t half) {
    return bitsFloat((uint32_t)half << 16);
}

static uint16_t floatToBf16(float value) {
    uint32_t bits = floatBits(value);
    if ((bits & 0x7fffffffU) > 0x7f800000U) {
        return (uint16_t)(bits >> 16 | 0x40U); /* a NaN stays one */
    }
    return (uint16_t)((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16); /* to nearest, ties to even */
}

static float fp16ToFloat(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000U) << 16;
    uint32_t exponent = half >> 10 & 0x1fU;
    uint32_t fraction = half & 0x3ffU;
    if (exponent == 0x1f) {
        return bitsFloat(sign | 0x7f800000U | fraction << 13);
    }
    if (exponent == 0) {
        float tiny = (float)fraction * 0x1p-24F; /* subnormal: exact in a float */
        return sign != 0 ? -tiny : tiny;
    }
    return bitsFloat(sign | (exponent + 112U) << 23 | fraction << 13);
}

static uint16_t floatToFp16(float value) {
    uint32_t bits = floatBits(value);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000U);
    uint32_t magnitude = bits & 0x7fffffffU;
    if (magnitude > 0x7f800000U) {
        return (uint16_t)(sign | 0x7e00U);
    }
    if (magnitude >= 0x47800000U) { /* 65536 and more */
        return (uint16_t)(sign | 0x7c00U);
    }
    if (magnitude < 0x38800000U) { /* below 2^-14: the adder rounds to the subnormals' step of 2^-24 */
        return (uint16_t)(sign | (floatBits(bitsFloat(magnitude) + 0.5F) - floatBits(0.5F)));
    }
    uint32_t rounded = magnitude + 0xfffU + (magnitude >> 13 & 1U);
    return (uint16_t)(sign | ((rounded - 0x38000000U) >> 13));
}

#define SAME(x) (x)
#define REDUCE_LOOP(T, WIDE, LOAD, STORE, EXPRESSION) \
    for (uint64_t i = 0; i < count; i++) {            \
        const WIDE a = LOAD(((const T *)into)[i]);    \
        const WIDE b = LOAD(((const T *)from)[i]);    \
        ((T *)into)[i] = STORE(EXPRESSION);           \
    }                                                 \
    return
#define REDUCE(NAME, T, WIDE, LOAD, STORE)                                                            \
    static void NAME(void *into, const void *from, uint64_t count, HcclReduceOp op) {                 \
        switch (op) {                                                                                 \
            case HCCL_REDUCE_SUM: REDUCE_LOOP(T, WIDE, LOAD, STORE, (WIDE)(a + b));                   \
            case HCCL_REDUCE_PROD: REDUCE_LOOP(T, WIDE, LOAD, STORE, (WIDE)(a * b));                  \
            case HCCL_REDUCE_MAX: REDUCE_LOOP(T, WIDE, LOAD, STORE, a > b ? a : b);                   \
            case HCCL_REDUCE_MIN: REDUCE_LOOP(T, WIDE, LOAD, STORE, a < b ? a : b);                   \
            default: return;                                                                          \
        }                                                                                             \
    }
/* Integers reduce unsigned-wide, so that overflow wraps as on the device; order needs the sign. */
#define WRAP8(x) ((int8_t)(x))
#define WRAP16(x) ((int16_t)(x))
#define WRAP32(x) ((int32_t)(x))
REDUCE(reduceInt8, int8_t, int32_t, SAME, WRAP8)
REDUCE(reduceInt16, int16_t, int32_t, SAME, WRAP16)
REDUCE(reduceFp32, float, float, SAME, SAME)
REDUCE(reduceFp16, uint16_t, float, fp16ToFloat, floatToFp16)
REDUCE(reduceBf16, uint16_t, float, bf16ToFloat, floatToBf16)

static void reduceInt32(void *into, const void *from, uint64_t count, HcclReduceOp op) {
    int32_t *a = into;
    const int32_t *b = from;
    for (uint64_t i = 0; i < count; i++) {
        uint32_t x = (uint32_t)a[i];
        uint32_t y = (uint32_t)b[i];
        switch (op) {
            case HCCL_REDUCE_SUM: a[i] = (int32_t)(x + y); break;
            case HCCL_REDUCE_PROD: a[i] = (int32_t)(x * y); break;
            case HCCL_REDUCE_MAX: a[i] = a[i] > b[i] ? a[i] : b[i]; break;
            default: a[i] = a[i] < b[i] ? a[i] : b[i]; break;
        }
    }
}

static void reduceInt64(void *into, const void *from, uint64_t count, HcclReduceOp op) {
    int64_t *a = into;
    const int64_t *b = from;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t x = (uint64_t)a[i];
        uint64_t y = (uint64_t)b[i];
        switch (op) {
            case HCCL_REDUCE_SUM: a[i] = (int64_t)(x + y); break;
            case HCCL_REDUCE_PROD: a[i] = (int64_t)(x * y); break;
            case HCCL_REDUCE_MAX: a[i] = a[i] > b[i] ? a[i] : b[i]; break;
            default: a[i] = a[i] < b[i] ? a[i] : b[i]; break;
        }
    }
}

void reduceInto(void *into, const void *from, uint64_t count, HcclDataType type, HcclReduceOp op) {
    switch (type) {
        case HCCL_DATA_TYPE_INT8: reduceInt8(into, from, count, op); return;
        case HCCL_DATA_TYPE_INT16: reduceInt16(into, from, count, op); return;
        case HCCL_DATA_TYPE_INT32: reduceInt32(into, from, count, op); return;
        case HCCL_DATA_TYPE_INT64: reduceInt64(into, from, count, op); return;
        case HCCL_DATA_TYPE_FP32: reduceFp32(into, from, count, op); return;
        case HCCL_DATA_TYPE_FP16: reduceFp16(into, from, count, op); return;
        case HCCL_DATA_TYPE_BFP16: reduceBf16(into, from, count, op); return;
        default: return;
    }
}
