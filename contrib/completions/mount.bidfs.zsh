#compdef mount.bidfs
# SPDX-License-Identifier: LGPL-2.1-or-later
# zsh completion of mount.bidfs(8). The words come from the program's --help.

_mount_bidfs()
{
	local help name action
	local -a values specs

	for help in ${(f)"$(_call_program options mount.bidfs --help)"}; do
		if [[ $help =~ '^  -o ([a-z_]+)(=[^ ]+)?(, [a-z_]+)?( +(.*))?$' ]]; then
			name=$match[1]
			# "errors=enoent|strict"
			action=' '
			[[ $match[2] == '=DIR'* ]] && action='_files -/'
			[[ $match[2] == *'|'* ]] && action="(${${match[2]#=}//|/ })"
			values+=("${name}[${match[5]//[\[\]]/}]${match[2]:+:$name:$action}")
			[[ -n $match[3] ]] && values+=("${match[3]#, }[${match[5]//[\[\]]/}]")
		elif [[ $help =~ '^  (-.), (--[a-z-]+)( [A-Z]+)? +(.*)$' ]]; then
			specs+=({$match[1],$match[2]}"[$match[4]]${match[3]:+:$match[3]: }")
		fi
	done
	_arguments $specs '*-o+[mount options]: :->options' '1:store:_files -/' '2:mount point:_files -/'
	[[ $state == options ]] && _values -s , option $values
}

local state
_mount_bidfs "$@"
