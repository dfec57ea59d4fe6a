# SPDX-License-Identifier: LGPL-2.1-or-later
# fish completion of bidctl(1). The words come from the program's --help.

# print the help of the command among the words before the cursor, then the operands behind it, each with a tab in front
function __bidctl_words
    set -l words (commandline -opc)
    set -l help (bidctl --help)
    set -l operands
    set -l command
    set -e words[1]
    while set -q words[1]
        if string match -qr -- "^ .* $words[1](, --[a-z-]+)?=[A-Z]" $help
            set -e words[1]
        else if string match -q -- '-*' $words[1]
        else if set -q command[1]
            set -a operands \t$words[1]
        else if string match -qr -- "^  $words[1] " $help
            set command $words[1]
            set help (bidctl $command --help)
        end
        set -e words[1]
    end
    printf '%s\n' $help $operands
end

# the ids in the store that begin with the current word; a list of all ids is of no use
function __bidctl_ids
    set -l words (commandline -opc)
    set -l store (string replace -rf '^--store=' '' -- $words)
    if set -l at (contains -i -- -s $words; or contains -i -- --store $words)
        set store $words[(math $at + 1)]
    end
    set -q store[1]; and set store --store=$store[1]
    string match -qr '^[0-9a-f]{2,}$' -- $argv[1]
    and bidctl $store list 2>/dev/null | string match -r "^$argv[1]\S*" | head -n 100
end

# print the words for an argument of --help, as "DIR" or "ID|FILE|kernel": __bidctl_values ARGUMENT TEXT-BEHIND-IT CURRENT-WORD
function __bidctl_values
    # "or 'packages'"
    string match -rag "'([a-z]+)'" -- $argv[2]
    for word in (string split '|' -- $argv[1])
        switch $word
            case ID
                __bidctl_ids $argv[3]
            case FILE LIST PATH
                __fish_complete_path $argv[3]
            case DIR MOUNT MOUNTPOINT STORE
                __fish_complete_directories $argv[3] ''
            case KIND
                printf '%s\n' debuginfo elf kallsyms probes vdso
            case PID
                __fish_complete_pids
            case ORDER WAY WHAT WHEN
                # "link or copy files: auto, hard or copy (default: auto)"
                string replace -ra ' \([^)]*\)|^[^:]*: ' '' -- $argv[2] | string replace -a ' or ' , | string split , | string trim
            case '*'
                string match -r '^[a-z]+$' -- $word
        end
    end
end

function __bidctl
    set -l current (commandline -ct)
    set -l last (commandline -opc)[-1]
    set -l help (__bidctl_words)
    set -l operands (string match -r '^\t.*' -- $help)
    # "--link=copy" is one word
    set -l behind (string match -rg '^(--[a-z-]+)=(.*)' -- $current)
    set -q behind[1]; or set behind $last $current
    set -l argument (string match -rg -- "^ .* $behind[1](?:, --[a-z-]+)?=([A-Z]+) +(.*)" $help)
    if set -q argument[1]
        set -l before (string match -r '^--[a-z-]+=' -- $current)
        printf "$before%s\n" (__bidctl_values $argument $behind[2])
    else if string match -q -- '-*' $current
        # options with an argument end with "="
        string replace -rf '^  (?:-., |    )(--[a-z-]+=?)\S* +(.*)' '$1\t$2' -- $help
    else if string match -q '* COMMAND *' $help[1]
        string replace -rf '^  ([a-z]+) .*?  +(.*)' '$1\t$2' -- $help
    else
        # "Usage: bidctl COMMAND [OPTION...] ID|FILE|kernel [KIND [NAME]]"
        set -l usage (string replace -r '.*\[OPTION\.\.\.\] ?' '' -- $help[1] | string replace -ra '[][]' '' | string split ' ')
        set -l operand $usage[(math (count $operands) + 1)]
        set -q operand[1]; or set operand (string match '?*...' -- $usage[-1])
        # a command has more kinds than an option
        __bidctl_values (string replace -r '^KIND' 'KIND|unstripped|source|section' -- $operand | string replace ... '') '' $current
    end
end

complete -c bidctl -f -a '(__bidctl)'
