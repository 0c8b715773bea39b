// SPDX-License-Identifier: Apache-2.0
// The tool in a library.
#include "openmp_tool.h"
