# SPDX-License-Identifier: LGPL-2.1-or-later
# fish completion of mount.bidfs(8). The words come from the program's --help.

# the options of "-o"; those with an argument end with "="
function __mount_bidfs_mount_options
    set -l before (commandline -ct | string replace -r '[^,]*$' '')
    set -l option (commandline -ct | string match -rg '([a-z_]+)=[^,]*$')
    set -l help (mount.bidfs --help)
    if set -q option[1]
        # "-o errors=enoent|strict"
        set -l values (string match -rg "^  -o $option=([a-z]+(?:\|[a-z]+)+)" $help | string split '|')
        set -q values[1]; and printf "$before$option=%s\n" $values
    else
        for line in (string replace -rf '^  -o ([a-z_]+(?:=|, [a-z_]+)?)(?<==)?\S* +(.*)' '$1\t$2' $help)
            set -l parts (string split \t -- $line)
            printf "$before%s\t$parts[2]\n" (string split ', ' -- $parts[1])
        end
    end
end

function __mount_bidfs_options
    echo -e '-o\tmount options'
    mount.bidfs --help | string replace -rf '^  -., (--[a-z-]+)(?: [A-Z]+)? +(.*)' '$1\t$2'
end

complete -c mount.bidfs -n 'test (commandline -opc)[-1] = -o' -f -a '(__mount_bidfs_mount_options)'
complete -c mount.bidfs -n 'string match -q -- "-*" (commandline -ct)' -f -a '(__mount_bidfs_options)'
