/* libacl_rt: each public function calls its *Impl through the dynamic symbol table. */
#include <stdarg.h>

#include "acl.h"

#ifdef EMU_BEFORE_9_0
#define TABLE ACL_BASE_TABLE
#else
#define TABLE ACL_TABLE
#endif

#define FORWARD(name, signature, arguments, does) \
    aclError name##Impl signature;                \
    EMU_EXPORT aclError name signature { return name##Impl arguments; }
#define FORWARD_TYPED(type, name, signature, arguments, does) \
    type name##Impl signature;                                \
    EMU_EXPORT type name signature { return name##Impl arguments; }
TABLE(FORWARD)
ACL_TYPED_TABLE(FORWARD_TYPED)

/* Logging goes to the system log on a node; nobody reads it here. */
EMU_EXPORT void aclAppLog(int level, const char *function, const char *file, uint32_t line, const char *format, ...);
EMU_EXPORT void aclAppLog(int level, const char *function, const char *file, uint32_t line, const char *format, ...) {}
