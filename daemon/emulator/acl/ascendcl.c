/* libascendcl: on a node the model and operator parts of ACL; what clients look up on its handle lies in libacl_rt. */
#include "cann.h"

EMU_EXPORT const char emuAscendclLibrary[] = "libascendcl of the emulated CANN";
