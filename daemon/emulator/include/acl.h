/* Prototypes of CANN's public runtime functions, as libacl_rt exports them. */
#ifndef ACL_H
#define ACL_H

#include "acl_table.h"
#include "cann.h"

#define ACL_DECLARE(name, signature, arguments, does) EMU_EXPORT aclError name signature;
#define ACL_DECLARE_TYPED(type, name, signature, arguments, does) EMU_EXPORT type name signature;
ACL_TABLE(ACL_DECLARE)
ACL_TYPED_TABLE(ACL_DECLARE_TYPED)
#undef ACL_DECLARE
#undef ACL_DECLARE_TYPED

#endif
