# SPDX-License-Identifier: LGPL-2.1-or-later
# fish completion of mount.bidfs(8). The words come from the program's --help.

# the options of "-o"; those with an argument end with "="
function __mount_bidfs_mount_options
    set -l before (commandline -ct | string replace -r '[^,]*$' '')
    switch (commandline -ct | string replace -r '.*,' '')
        case 'errors=*'
            printf '%s\n' "$before"(printf 'errors=%s\n' enoent strict)
        case 'require=*'
            printf '%s\n' "$before"(printf 'require=%s\n' any signed)
        case 'passthrough=*'
            printf '%s\n' "$before"(printf 'passthrough=%s\n' auto on off)
        case 'sandbox=*'
            printf '%s\n' "$before"(printf 'sandbox=%s\n' auto on off)
        case 'log_level=*'
            printf '%s\n' "$before"(printf 'log_level=%s\n' error warning info debug)
        case '*'
            for option in (mount.bidfs --help | string replace -rf '^  -o ([a-z_]+(?:=|, [a-z_]+)?)(?<==)?\S* +(.*)' '$1\t$2')
                set -l parts (string split \t -- $option)
                for name in (string split ', ' -- $parts[1])
                    printf '%s\t%s\n' "$before$name" $parts[2]
                end
            end
    end
end

function __mount_bidfs_options
    echo -e '-o\tmount options'
    mount.bidfs --help | string replace -rf '^  -., (--[a-z-]+)(?: [A-Z]+)? +(.*)' '$1\t$2'
end

complete -c mount.bidfs -n 'test (commandline -opc)[-1] = -o' -f -a '(__mount_bidfs_mount_options)'
complete -c mount.bidfs -n 'string match -q -- "-*" (commandline -ct)' -f -a '(__mount_bidfs_options)'
