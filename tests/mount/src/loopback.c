// SPDX-License-Identifier: LGPL-2.1-or-later
/* To be preloaded: servers on all interfaces listen on the loopback interface. debuginfod before 0.192 has no option for that. */
#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/socket.h>

typedef int (*bind_fn)(int fd, const struct sockaddr *address, socklen_t len);

int bind(int fd, const struct sockaddr *address, socklen_t len)
{
	bind_fn real = (bind_fn)dlsym(RTLD_NEXT, "bind");
	struct sockaddr_in6 six;
	struct sockaddr_in four;

	if (address->sa_family == AF_INET6) {
		/* ::ffff:127.0.0.1, for IPv4 clients */
		six = *(const struct sockaddr_in6 *)address;
		six.sin6_addr = (struct in6_addr){ .s6_addr = { [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1 } };
		return real(fd, (const struct sockaddr *)&six, len);
	}
	if (address->sa_family == AF_INET) {
		four = *(const struct sockaddr_in *)address;
		four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		return real(fd, (const struct sockaddr *)&four, len);
	}
	return real(fd, address, len);
}
