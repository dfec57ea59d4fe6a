// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sandbox/landlock.h"

#include <errno.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* include/uapi/linux/landlock.h, with the version of Landlock after each newer name */
enum {
	FS_EXECUTE = 1 << 0,
	FS_WRITE_FILE = 1 << 1,
	FS_READ_FILE = 1 << 2,
	FS_READ_DIR = 1 << 3,
	FS_REMOVE_DIR = 1 << 4,
	FS_REMOVE_FILE = 1 << 5,
	FS_MAKE_CHAR = 1 << 6,
	FS_MAKE_DIR = 1 << 7,
	FS_MAKE_REG = 1 << 8,
	FS_MAKE_SOCK = 1 << 9,
	FS_MAKE_FIFO = 1 << 10,
	FS_MAKE_BLOCK = 1 << 11,
	FS_MAKE_SYM = 1 << 12,
	FS_REFER = 1 << 13, /* 2 */
	FS_TRUNCATE = 1 << 14, /* 3 */
	FS_IOCTL_DEV = 1 << 15, /* 5 */

	NET_BIND_TCP = 1 << 0, /* 4 */
	NET_CONNECT_TCP = 1 << 1, /* 4 */

	SCOPE_ABSTRACT_UNIX_SOCKET = 1 << 0, /* 6 */
	SCOPE_SIGNAL = 1 << 1, /* 6 */

	FS_OF_VERSION_2 = (FS_REFER << 1) - 1,
	FS_OF_FILES = FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV,

	CREATE_RULESET_VERSION = 1 << 0,
	RULE_PATH_BENEATH = 1,
};

/* An older kernel accepts the longer structure if the unknown rest is zero. */
struct ruleset_attributes {
	uint64_t handled_access_fs;
	uint64_t handled_access_net; /* 4 */
	uint64_t scoped; /* 6 */
};

struct path_beneath_attributes {
	uint64_t allowed_access;
	int32_t parent_fd;
} __attribute__((packed));

int bid_landlock_version(void)
{
	long version = syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_RULESET_VERSION);

	return version < 0 ? -errno : (int)version;
}

int bid_landlock_new(int version, bool connect, int *ret_ruleset)
{
	struct ruleset_attributes attributes = { .handled_access_fs = FS_OF_VERSION_2 };
	long ruleset;

	if (version < 2)
		return -EOPNOTSUPP;
	if (version >= 3)
		attributes.handled_access_fs |= FS_TRUNCATE;
	if (version >= 4)
		attributes.handled_access_net = connect ? NET_BIND_TCP : NET_BIND_TCP | NET_CONNECT_TCP;
	if (version >= 5)
		attributes.handled_access_fs |= FS_IOCTL_DEV;
	if (version >= 6)
		attributes.scoped = SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL;
	/* the descriptor is close-on-exec */
	ruleset = syscall(SYS_landlock_create_ruleset, &attributes, sizeof(attributes), 0);
	if (ruleset < 0)
		return -errno;
	*ret_ruleset = (int)ruleset;
	return 0;
}

static uint64_t access_bits(unsigned access)
{
	uint64_t all = 0;

	if (access & BID_LANDLOCK_READ)
		all |= FS_READ_FILE | FS_READ_DIR;
	if (access & BID_LANDLOCK_WRITE)
		all |= FS_WRITE_FILE | FS_TRUNCATE;
	if (access & BID_LANDLOCK_CHANGE)
		all |= FS_REMOVE_DIR | FS_REMOVE_FILE | FS_MAKE_DIR | FS_MAKE_REG | FS_MAKE_SYM | FS_REFER;
	if (access & BID_LANDLOCK_EXECUTE)
		all |= FS_EXECUTE;
	return all;
}

int bid_landlock_allow(int ruleset, int fd, unsigned access)
{
	struct path_beneath_attributes rule = { .allowed_access = access_bits(access), .parent_fd = fd };
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		rule.allowed_access &= FS_OF_FILES;
	if (syscall(SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &rule, 0) == 0)
		return 0;
	/* before version 3 a ruleset without FS_TRUNCATE refuses the bit in a rule */
	if (errno != EINVAL)
		return -errno;
	rule.allowed_access &= ~(uint64_t)FS_TRUNCATE;
	return syscall(SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &rule, 0) < 0 ? -errno : 0;
}

int bid_landlock_enter(int ruleset)
{
	return syscall(SYS_landlock_restrict_self, ruleset, 0) < 0 ? -errno : 0;
}
