# SPDX-License-Identifier: LGPL-2.1-or-later
# fish completion of bidctl(1). The words come from the program's --help.

# the command among the words before the cursor, and the operands behind it
function __bidctl_words
    set -l words (commandline -opc)
    set -e words[1]
    while set -q words[1]
        switch $words[1]
            case -s --store --lower --links --url --link --perf-data --core --pid --jobs --files-from --interval \
                    -o --output --options --by --path --cache-size --min-free --kind --missing --root --color --progress \
                    --lines --format
                set -e words[1]
            case '-*'
            case '*'
                echo $words[1]
        end
        set -e words[1]
    end
end

function __bidctl_commands
    bidctl --help | string replace -rf '^  ([a-z]+) .*?  +(.*)' '$1\t$2'
end

# options with an argument end with "="
function __bidctl_options
    bidctl $argv[1] --help | string replace -rf '^  (?:-., |    )(--[a-z-]+=?)\S* +(.*)' '$1\t$2'
end

# the ids in the store that begin with the current word; a list of all ids is of no use
function __bidctl_ids
    set -l begin (commandline -ct)
    set -l words (commandline -opc)
    set -l store (string replace -rf '^--store=' '' -- $words)
    if set -l at (contains -i -- -s $words; or contains -i -- --store $words)
        set store $words[(math $at + 1)]
    end
    set -q store[1]; and set store --store=$store[1]
    string match -qr '^[0-9a-f]{2,}$' -- $begin
    and bidctl $store list 2>/dev/null | string match -r "^$begin\S*" | head -n 100
end

function __bidctl
    set -l words (__bidctl_words)
    set -l last (commandline -opc)[-1]
    set -l current (commandline -ct)
    switch $last
        case --by
            printf '%s\n' id path time size
            return
        case --link
            printf '%s\n' auto reflink hard copy
            return
        case --kind --missing
            printf '%s\n' debuginfo elf kallsyms probes vdso
            return
        case --color --progress
            printf '%s\n' auto always never
            return
        case --pid
            __fish_complete_pids
            return
    end
    switch $current
        case '-*'
            __bidctl_options $words[1]
        case '*'
            switch "$words[1]:"(count $words)
                case ':*'
                    __bidctl_commands
                case quarantine:1
                    printf '%s\n' list restore drop
                case 'mount:*' 'umount:*'
                    __fish_complete_directories
                case offline:1
                    printf '%s\n' on off
                case 'offline:*'
                    __fish_complete_directories
                case setup:1
                    printf '%s\n' system user
                case probe:1
                    printf '%s\n' list show add remove apply
                case probe:2
                    echo kernel
                    __bidctl_ids
                case get:2
                    printf '%s\n' debuginfo elf executable kallsyms probes vdso unstripped source section
                case get:1 show:1 'pin:*' 'remove:*' 'archive:*' 'missing:*' 'verify:*'
                    __bidctl_ids
            end
    end
end

# operands that may be files: fish completes file names, too
function __bidctl_takes_file
    set -l words (__bidctl_words)
    set -l last (commandline -opc)[-1]
    contains -- $last --by --link --pid --jobs --url --interval --cache-size --min-free --color --progress --lines --format
    and return 1
    contains -- $last -s --store --lower --links --against --perf-data --core --files-from -o --output --path --root
    or string match -qr -- '^--(store|lower|links|against|perf-data|core|files-from|output|path|root)=' (commandline -ct)
    or contains -- "$words[1]" add update remove unarchive
    or test "$words[1]" = probe -a (count $words) -eq 2
end

complete -c bidctl -n 'not __bidctl_takes_file' -f
complete -c bidctl -a '(__bidctl)'
# behind "=" only fish itself completes
complete -c bidctl -n 'string match -q -- "--by=*" (commandline -ct)' -l by -x -a 'id path time size'
complete -c bidctl -n 'string match -q -- "--require=*" (commandline -ct)' -l require -x -a 'any signed'
complete -c bidctl -n 'string match -q -- "--link=*" (commandline -ct)' -l link -x -a 'auto reflink hard copy'
for option in kind missing
    complete -c bidctl -n "string match -q -- '--$option=*' (commandline -ct)" -l $option -x -a 'debuginfo elf kallsyms probes vdso'
end
for option in color progress
    complete -c bidctl -n "string match -q -- '--$option=*' (commandline -ct)" -l $option -x -a 'auto always never'
end
