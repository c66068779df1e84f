# complete.zsh SCRIPT LINE...: type each line into a zsh that has the completion script, press Tab, and
# print the lines that the shell then shows.
zmodload zsh/zpty
script=$1
shift
rm -f typed
zpty shell zsh -f -i
zpty -w shell 'PS1=; autoload -Uz compinit; compinit -u -D; source '$script
zpty -w shell 'note() { print -r -- "$BUFFER" >>typed }; zle -N note; bindkey "^Xn" note; print ready >>typed'
# has_lines N: wait until ./typed has so many lines.
has_lines() {
    for try in {1..600}; do
        [[ -f typed && $(wc -l <typed) -ge $1 ]] && return
        sleep 0.05
    done
}
count=1
has_lines 1
for line in "$@"; do
    zpty -w -n shell "$line"$'\t\x18n\x15'
    has_lines $((++count))
done
zpty -d shell
sed 1d typed
