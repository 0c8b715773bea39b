// SPDX-License-Identifier: Apache-2.0
// Modules that dlmopen() has loaded into link namespaces other than the program's. dl_iterate_phdr() visits the modules
// of its caller's namespace alone.
#pragma once

#include <link.h>

#include "collectors/in_target/libc/real_functions.h"

namespace crosstalk::in_target::modules {

/// Calls `visitor` for each such module until it returns another value than 0, as dl_iterate_phdr() does, with the
/// counts of changes of `first`, and without facts of thread-local storage. Only for a visitor of iterate_modules(),
/// meanwhile the loader's lock is held. Visits none with a glibc before 2.35, which does not list the namespaces. One
/// thread at a time. Allocates nothing, leaves errno as it is.
int visit_other_namespaces(const dl_phdr_info& first, ModuleVisitor visitor, void* data);

}  // namespace crosstalk::in_target::modules
