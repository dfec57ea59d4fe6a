# SPDX-License-Identifier: LGPL-2.1-or-later
# bash completion of bidctl(1); needs nothing but bash. The words come from the program's --help.

# print the words that begin with "current" for an argument of --help, as "DIR" or "ID|FILE|kernel"; $2 is the text behind it
_bidctl_words()
{
	local word

	# "or 'packages'"
	compgen -W "$(grep -o "'[a-z]*'" <<<"$2")" -- "$current"
	for word in ${1//|/ }; do
		case $word in
		ID)
			# a list of all ids is of no use, and grep ends the list as soon as there are enough
			[[ ${#current} -lt 2 || $current == *[!0-9a-f]* ]] ||
				bidctl "${store[@]}" list 2>/dev/null | cut -f 1 | grep -m 100 "^$current"
			;;
		FILE | LIST | PATH) compgen -f -- "$current" ;;
		DIR | MOUNT | MOUNTPOINT | STORE) compgen -d -- "$current" ;;
		KIND) compgen -W 'debuginfo elf kallsyms probes vdso' -- "$current" ;;
		PID) compgen -W "$(ps -eo pid=)" -- "$current" ;;
		URL) compgen -W "$DEBUGINFOD_URLS" -- "$current" ;;
		# "link or copy files: auto, hard or copy (default: auto)"
		ORDER | WAY | WHAT | WHEN) compgen -W "$(sed 's/ ([^)]*)//g; s/.*: //; s/,\| or / /g' <<<"$2")" -- "$current" ;;
		[a-z]*) compgen -W "$word" -- "$current" ;;
		esac
	done
}

_bidctl()
{
	local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} help word operand command='' operands=0 i
	local argument=$'(, --[a-z-]+)?=([A-Z]+) +([^\n]*)' store=() tokens

	# "--link=copy" comes as three words
	if [[ $current == = ]]; then
		current=''
	elif [[ $previous == = ]]; then
		previous=${COMP_WORDS[COMP_CWORD - 2]}
	fi
	help=$(bidctl --help)
	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		if [[ $word == -* && $help =~ " $word"$argument ]]; then
			[[ ${COMP_WORDS[++i]} == = ]] && ((++i))
			[[ $word == -s || $word == --store ]] && store=(--store "${COMP_WORDS[i]/#\~\//$HOME/}")
		elif [[ $command && $word != -* ]]; then
			((++operands))
		elif [[ $help == *$'\n'"  $word "* ]]; then
			command=$word help=$(bidctl "$word" --help)
		fi
	done

	COMPREPLY=()
	if [[ $previous == -* && $help =~ " $previous"$argument ]]; then
		compopt -o filenames
		mapfile -t COMPREPLY < <(_bidctl_words "${BASH_REMATCH[2]}" "${BASH_REMATCH[3]}")
	elif [[ $current == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(sed -nE 's/^  (-., |    )(--[a-z-]+=?).*/\2/p' <<<"$help")" -- "$current")
		[[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace
	elif [[ -z $command ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(sed -nE 's/^  ([a-z]+) .*/\1/p' <<<"$help")" -- "$current")
	else
		# "Usage: bidctl COMMAND [OPTION...] ID|FILE|kernel [KIND [NAME]]"
		help=${help%%$'\n'*}
		help=${help#*\[OPTION...\]}
		read -ra tokens <<<"${help//[\[\]]/}"
		operand=${tokens[operands]-}
		[[ -z $operand && ${tokens[*]: -1} == ?*... ]] && operand=${tokens[*]: -1}
		compopt -o filenames
		# a command has more kinds than an option
		operand=${operand/#KIND/KIND|unstripped|source|section}
		mapfile -t COMPREPLY < <(_bidctl_words "${operand%...}" '')
	fi
}

complete -F _bidctl bidctl
