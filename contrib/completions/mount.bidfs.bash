# SPDX-License-Identifier: LGPL-2.1-or-later
# bash completion of mount.bidfs(8); needs nothing but bash. The words come from the program's --help.

_mount_bidfs()
{
	local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} option='' before='' words help

	# "-o errors=strict" comes as four words, "-o errors=" as three
	if [[ $current == = ]]; then
		option=${previous##*,}
		current=''
	elif [[ $previous == = ]]; then
		option=${COMP_WORDS[COMP_CWORD - 2]##*,}
	fi
	help=$(mount.bidfs --help)

	COMPREPLY=()
	if [[ ($option && $help == *"-o $option=DIR"*) || (-z $option && $previous != -o && $current != -*) ]]; then
		compopt -o filenames
		mapfile -t COMPREPLY < <(compgen -d -- "${current##*:}")
	elif [[ $option == url ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$DEBUGINFOD_URLS" -- "$current")
	elif [[ $option ]]; then
		# "-o errors=enoent|strict"
		[[ $help =~ "-o $option="([a-z]+(\|[a-z]+)+) ]] && words=${BASH_REMATCH[1]//|/ }
		mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
	elif [[ $previous == -o ]]; then
		# options are separated by commas: the last one is completed, those before it stay
		[[ $current == *,* ]] && before=${current%,*},
		words=$(sed -nE 's/^  -o ([a-z_]+)(, ([a-z_]+))? .*/\1 \3/p; s/^  -o ([a-z_]+=).*/\1/p' <<<"$help")
		mapfile -t COMPREPLY < <(compgen -P "$before" -W "$words" -- "${current##*,}")
		compopt -o nospace
	else
		words=$(sed -nE 's/^  -., (--[a-z-]+).*/\1/p' <<<"$help")
		mapfile -t COMPREPLY < <(compgen -W "-o $words" -- "$current")
	fi
}

complete -F _mount_bidfs mount.bidfs
