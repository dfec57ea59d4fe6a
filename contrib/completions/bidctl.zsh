#compdef bidctl
# SPDX-License-Identifier: LGPL-2.1-or-later
# zsh completion of bidctl(1). The words come from the program's --help.

# put the options of the command $1 into "specs", for _arguments, and its usage, as "ID|FILE|kernel [KIND [NAME]]", into "usage"
_bidctl_read()
{
	local line words action quoted
	local -A actions=(DIR '_files -/' FILE _files LIST _files PATH _files PID _pids
		KIND '(debuginfo elf kallsyms probes vdso)')

	specs=()
	for line in ${(f)"$(_call_program options bidctl $1 --help)"}; do
		[[ $line == Usage:* ]] && usage=(${=${line#*OPTION...\]}//[\[\]]/})
		[[ $line =~ '^  (-.|  )[, ] (--[a-z-]+)(=([A-Z]+))? +(.*)$' ]] || continue
		# "link or copy files: auto, hard or copy (default: auto)"
		words=${${match[5]//(, | or )/ }// \([^)]#\)/}
		[[ $match[4] == (ORDER|WAY|WHAT|WHEN) ]] && actions[$match[4]]="(${words#*: })"
		# "or 'packages'"
		quoted=${${(M)${=match[5]}:#*\'[a-z]##\'*}//[^a-z]/}
		action=${actions[$match[4]]:- }
		[[ -n $quoted ]] && action="{compadd $quoted; $action}"
		line="[${${match[5]//\[/(}//\]/)}]${match[4]:+:$match[4]:$action}"
		specs+=("$match[2]${match[4]:+=}$line")
		[[ $match[1] == -* ]] && specs+=("$match[1]${match[4]:++}$line")
	done
}

# the ids in the store that begin with the current word; a list of all ids is of no use
_bidctl_ids()
{
	local -a store found

	[[ $PREFIX == [0-9a-f](#c2,) ]] || return
	(( ${+opt_args[--store]} )) && store=(--store "$opt_args[--store]")
	(( ${+opt_args[-s]} )) && store=(--store "$opt_args[-s]")
	# grep ends the list as soon as there are enough
	found=(${(f)"$(bidctl $store list 2>/dev/null | cut -f 1 | grep -m 100 "^$PREFIX")"})
	compadd -a found
}

_bidctl_operand()
{
	local word

	for word in ${(s:|:)${1%...}}; do
		case $word in
		(ID) _bidctl_ids ;;
		(FILE) _files ;;
		(DIR|MOUNT|MOUNTPOINT|STORE) _files -/ ;;
		(KIND) compadd debuginfo elf kallsyms probes vdso unstripped source section ;;
		([a-z]*) compadd $word ;;
		esac
	done
}

_bidctl()
{
	setopt local_options extended_glob
	local state curcontext=$curcontext
	local -a line specs commands usage
	local -A opt_args

	_bidctl_read ''
	# the options of every command may stand before it, too
	_arguments -C -A '-*' $specs '1: :->command' '*:: :->operand'
	case $state in
	(command)
		commands=(${(M)${(f)"$(_call_program commands bidctl --help)"}:#  [a-z]*})
		commands=(${commands/(#b)  ([a-z]##)*  ##(*)/$match[1]:$match[2]})
		_describe command commands
		;;
	(operand)
		_bidctl_read $words[1]
		_arguments $specs '*: :->operand'
		[[ $state == operand ]] && _bidctl_operand "${usage[$#line]:-${(M)usage[-1]:#?*...}}"
		;;
	esac
}

_bidctl "$@"
