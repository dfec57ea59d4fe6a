// SPDX-License-Identifier: LGPL-2.1-or-later
#include "object.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "../random.h"
#include "api/elf.h"
#include "base/cleanup.h"
#include "base/io.h"

enum { EXTRA_MAX = 64 * 1024 }; /* bytes behind the template */

int object_template(struct template *ret_template)
{
	bid_auto_fd int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	const char *at;

	if (fd < 0 || bid_read_file(fd, 64 << 20, &ret_template->data, &ret_template->len) < 0 ||
	    bid_elf_build_id(fd, &ret_template->id) < 0)
		return -1;
	at = memmem(ret_template->data, ret_template->len, ret_template->id.bytes, ret_template->id.len);
	if (!at)
		return -1;
	ret_template->id_at = (size_t)(at - ret_template->data);
	return 0;
}

char *object_make(const struct power_trial *trial, uint32_t number, struct bid_id *ret_id, size_t *ret_len)
{
	const struct template *template = trial->template;
	uint64_t state = trial->seed ^ (uint64_t)number << 32;
	size_t extra = next_random(&state) % EXTRA_MAX;
	char *data = malloc(template->len + extra);

	if (!data)
		exit(1);
	memcpy(data, template->data, template->len);
	*ret_id = template->id;
	for (size_t i = 0; i < ret_id->len; i++)
		ret_id->bytes[i] = (uint8_t)next_random(&state);
	memcpy(ret_id->bytes, &number, sizeof(number));
	memcpy(data + template->id_at, ret_id->bytes, ret_id->len);
	for (size_t i = 0; i < extra; i++)
		data[template->len + i] = (char)(i * 7 + number);
	*ret_len = template->len + extra;
	return data;
}

int object_write(const char *path, const char *data, size_t len)
{
	bid_auto_fd int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);

	return fd < 0 ? -errno : bid_pwrite_full(fd, data, len, 0);
}
