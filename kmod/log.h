/* SPDX-License-Identifier: GPL-2.0 */
/* Included before everything else (Kbuild): messages of the module begin with its name. */
#define pr_fmt(format) KBUILD_MODNAME ": " format
