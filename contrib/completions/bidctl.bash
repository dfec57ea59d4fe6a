# SPDX-License-Identifier: LGPL-2.1-or-later
# bash completion of bidctl(1); needs nothing but bash.

# the ids in the store that begin with $1; a list of all ids is of no use
_bidctl_ids()
{
	local store=() i

	[[ ${#1} -ge 2 && $1 != *[!0-9a-f]* ]] || return
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		-s | --store)
			[[ ${COMP_WORDS[i + 1]} == = ]] && ((i++))
			store=(--store "${COMP_WORDS[i + 1]/#\~\//$HOME/}")
			;;
		esac
	done
	# grep ends the list as soon as there are enough
	mapfile -t COMPREPLY < <(bidctl "${store[@]}" list 2>/dev/null | cut -f 1 | grep -m 100 "^$1")
}

_bidctl()
{
	local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command='' operands=0 i
	local options='--store --json --verbose --quiet --color= --progress= --help --version'

	# "--link=copy" comes as three words
	if [[ $current == = ]]; then
		current=''
	elif [[ $previous == = ]]; then
		previous=${COMP_WORDS[COMP_CWORD - 2]}
	fi
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		-s | --store | --lower | --links | --url | --link | --perf-data | --core | --pid | --jobs | --files-from | \
			--interval | -o | --output | --options | --by | --path | --cache-size | --min-free | --kind | \
			--missing | --root | --color | --progress | --lines | --format)
			[[ ${COMP_WORDS[i + 1]} == = ]] && ((i++))
			((i++))
			;;
		-*) ;;
		*)
			if [[ -z $command ]]; then
				command=${COMP_WORDS[i]}
			else
				((operands++))
			fi
			;;
		esac
	done

	COMPREPLY=()
	case $previous in
	--by)
		mapfile -t COMPREPLY < <(compgen -W 'id path time size' -- "$current")
		return
		;;
	--require)
		mapfile -t COMPREPLY < <(compgen -W 'any signed' -- "$current")
		return
		;;
	--path)
		compopt -o filenames
		mapfile -t COMPREPLY < <(compgen -f -- "$current")
		return
		;;
	-s | --store | --lower | --links | --root)
		compopt -o filenames
		mapfile -t COMPREPLY < <(compgen -d -- "$current")
		return
		;;
	--against)
		compopt -o filenames
		mapfile -t COMPREPLY < <(compgen -W packages -- "$current"; compgen -f -- "$current")
		return
		;;
	--perf-data | --core | --files-from | -o | --output)
		compopt -o filenames
		mapfile -t COMPREPLY < <(compgen -f -- "$current")
		return
		;;
	--pid)
		mapfile -t COMPREPLY < <(compgen -W "$(ps -eo pid=)" -- "$current")
		return
		;;
	--kind | --missing)
		mapfile -t COMPREPLY < <(compgen -W 'debuginfo elf kallsyms probes vdso' -- "$current")
		return
		;;
	--color | --progress)
		mapfile -t COMPREPLY < <(compgen -W 'auto always never' -- "$current")
		return
		;;
	--link)
		mapfile -t COMPREPLY < <(compgen -W 'auto reflink hard copy' -- "$current")
		return
		;;
	--jobs)
		mapfile -t COMPREPLY < <(compgen -W "1 2 4 $(nproc)" -- "$current")
		return
		;;
	--url)
		mapfile -t COMPREPLY < <(compgen -W "$DEBUGINFOD_URLS" -- "$current")
		return
		;;
	esac
	if [[ $current == -* ]]; then
		case $command in
		add)
			options+=' --perf-data= --fetch --url= --links= --link= --jobs= --cross --running --kernel --files-from='
			options+=' --dry-run'
			;;
		get) options+=' --lower= --links= --url= --offline --refresh --accept --require= --perf-data= --core= --pid=' ;;
		archive) options+=' --output= --perf-data= --fetch --url= --lower= --links=' ;;
		list) options+=' --content-keys --by= --kind= --missing= --format= --null --lower= --links=' ;;
		missing) options+=' --perf-data= --lower= --links=' ;;
		show) options+=' --lower= --links=' ;;
		status) options+=' --watch --interval= --lower= --links=' ;;
		remove) options+=' --path= --dry-run' ;;
		pin | probe | quarantine) options+=' --dry-run' ;;
		mount) options+=' --options=' ;;
		doctor) options+=' --url= --offline' ;;
		setup) options+=' --url= --undo --root= --dry-run' ;;
		gc) options+=' --cache-size= --min-free= --dry-run' ;;
		log) options+=' --lines=' ;;
		watch) options+=' --link= --interval= --once' ;;
		update) options+=' --link= --dry-run' ;;
		verify) options+=' --jobs= --deep --against= --repair --url= --links= --offline' ;;
		esac
		mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current")
		[[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace
		return
	fi
	case $command:$operands in
	:*)
		mapfile -t COMPREPLY < <(compgen -W 'add list show get remove update missing archive unarchive probe verify du
			gc log pin quarantine mount umount doctor watch offline setup status' -- "$current")
		;;
	add:* | update:*)
		compopt -o filenames
		mapfile -t COMPREPLY < <(compgen -f -- "$current")
		;;
	remove:*)
		compopt -o filenames
		_bidctl_ids "$current"
		mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$current")
		;;
	unarchive:0)
		compopt -o filenames
		mapfile -t COMPREPLY < <(compgen -f -- "$current")
		;;
	archive:* | pin:* | show:0 | get:0 | missing:* | verify:*)
		_bidctl_ids "$current"
		;;
	probe:0)
		mapfile -t COMPREPLY < <(compgen -W 'list show add remove apply' -- "$current")
		;;
	probe:1)
		compopt -o filenames
		_bidctl_ids "$current"
		mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -W kernel -- "$current"; compgen -f -- "$current")
		;;
	setup:0)
		mapfile -t COMPREPLY < <(compgen -W 'system user' -- "$current")
		;;
	quarantine:0)
		mapfile -t COMPREPLY < <(compgen -W 'list restore drop' -- "$current")
		;;
	mount:* | umount:*)
		compopt -o filenames
		mapfile -t COMPREPLY < <(compgen -d -- "$current")
		;;
	offline:0)
		mapfile -t COMPREPLY < <(compgen -W 'on off' -- "$current")
		;;
	offline:*)
		compopt -o filenames
		mapfile -t COMPREPLY < <(compgen -d -- "$current")
		;;
	get:1)
		mapfile -t COMPREPLY < <(
			compgen -W 'debuginfo elf executable kallsyms probes vdso unstripped source section' -- "$current")
		;;
	get:2)
		# sections that debuggers read; a source path exists only on the machine that compiled it
		[[ $previous == section ]] && mapfile -t COMPREPLY < <(compgen -W '.debug_abbrev .debug_info .debug_line .debug_str
			.eh_frame .gdb_index .symtab .strtab .text' -- "$current")
		;;
	esac
}

complete -F _bidctl bidctl
