#compdef bidctl
# SPDX-License-Identifier: LGPL-2.1-or-later
# zsh completion of bidctl(1). The words come from the program's --help.

# put the options of the command $1 into "specs", for _arguments
_bidctl_specs()
{
	local line argument about
	local -A actions=(DIR '_files -/' FILE _files LIST _files PATH _files PID _pids WAY '(auto reflink hard copy)'
		ORDER '(id path time size)' WHAT '(any signed)' WHEN '(auto always never)'
		KIND '(debuginfo elf kallsyms probes vdso)')

	specs=()
	for line in ${(f)"$(_call_program options bidctl $1 --help)"}; do
		[[ $line =~ '^  (-.|  )[, ] (--[a-z-]+)(=([A-Z]+))? +(.*)$' ]] || continue
		argument=$match[4]
		about="[${${match[5]//\[/(}//\]/)}]"
		[[ -n $argument ]] && about+=":$argument:${actions[$argument]:- }"
		specs+=("$match[2]${argument:+=}$about")
		[[ $match[1] == -* ]] && specs+=("$match[1]${argument:++}$about")
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
	case $1:$2 in
	(add:*|update:*|unarchive:1) _files ;;
	(remove:*) _bidctl_ids; _files ;;
	(archive:*|pin:*|show:1|get:1|missing:*|verify:*) _bidctl_ids ;;
	(get:2) compadd debuginfo elf executable kallsyms probes vdso unstripped source section ;;
	(offline:1) compadd on off ;;
	(quarantine:1) compadd list restore drop ;;
	(mount:*|umount:*) _files -/ ;;
	(offline:*) _files -/ ;;
	(setup:1) compadd system user ;;
	(probe:1) compadd list show add remove apply ;;
	(probe:2) compadd kernel; _bidctl_ids; _files ;;
	esac
}

_bidctl()
{
	setopt local_options extended_glob
	local state curcontext=$curcontext
	local -a line specs commands
	local -A opt_args

	_bidctl_specs ''
	# the options of every command may stand before it, too
	_arguments -C -A '-*' ${(M)specs:#(-|--(store|json|verbose|quiet|color|progress|help|version))*} '1: :->command' \
		'*:: :->operand'
	case $state in
	(command)
		commands=(${(M)${(f)"$(_call_program commands bidctl --help)"}:#  [a-z]*})
		commands=(${commands/(#b)  ([a-z]##)*  ##(*)/$match[1]:$match[2]})
		_describe command commands
		;;
	(operand)
		local command=$words[1]
		_bidctl_specs $command
		_arguments $specs '*: :->operand'
		[[ $state == operand ]] && _bidctl_operand $command $#line
		;;
	esac
}

_bidctl "$@"
