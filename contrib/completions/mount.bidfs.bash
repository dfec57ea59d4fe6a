# SPDX-License-Identifier: LGPL-2.1-or-later
# bash completion of mount.bidfs(8); needs nothing but bash.

_mount_bidfs()
{
	local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} option='' before=''
	local options='url= offline lower= links= wait= errors= require= miss_rate= max_size= cache_size= min_free= passthrough='
	options+=' sandbox= max_threads= busy_poll= allow_other nonempty foreground log_level= ro rw'

	# "-o errors=strict" comes as four words, "-o errors=" as three
	if [[ $current == = ]]; then
		option=$previous
		current=''
	elif [[ $previous == = ]]; then
		option=${COMP_WORDS[COMP_CWORD - 2]}
	fi

	COMPREPLY=()
	if [[ -n $option ]]; then
		case ${option##*,} in
		errors) options='enoent strict' ;;
		require) options='any signed' ;;
		passthrough | sandbox) options='auto on off' ;;
		log_level) options='error warning info debug' ;;
		url) options=$DEBUGINFOD_URLS ;;
		lower) options='debuginfod none' ;;
		links)
			compopt -o filenames
			mapfile -t COMPREPLY < <(compgen -d -- "${current##*:}")
			return
			;;
		*) return ;;
		esac
		mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current")
	elif [[ $previous == -o ]]; then
		# options are separated by commas: the last one is completed, those before it stay
		[[ $current == *,* ]] && before=${current%,*},
		mapfile -t COMPREPLY < <(compgen -P "$before" -W "$options" -- "${current##*,}")
		compopt -o nospace
	elif [[ $current == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W '-o --fake --no-mtab --sloppy --verbose --types --help --version' -- "$current")
	else
		compopt -o filenames
		mapfile -t COMPREPLY < <(compgen -d -- "$current")
	fi
}

complete -F _mount_bidfs mount.bidfs
