# bash completion for spillway: commands, options, and the names of a store's definitions.

_spillway_commands='define import append read count contains update edit remove trim export explain verify repair status stats
    owners threshold scan plan plan-set report migrate sweep consolidate control drop convert copy backup restore
    bench serve help'

_spillway_options() {
    local common='--help'
    case $1 in
    define)
        echo "$common --preset= --layout= --keep= --order= --threshold= --page= --max-bytes=
            --page-bytes= --op-window= --collection= --array= --count-field= --overflow-field= --pages-field=
            --page-collection= --page-owner= --page-number= --page-array= --page-count=
            --element-id-field= --id-field= --unique --time-field= --retain-elements= --retain-age=
            --window= --window-field= --window-source= --value-field= --stats-field= --stats-count=
            --stats-average= --stats-sum= --stats-min= --stats-max= --top= --top-field= --sort-by=
            --json --quiet --durability= --mode="
        ;;
    import)
        echo "$common --owner= --elements= --entries-as= --owner-inner= --fields --collection= --id=
            --format= --as= --skip-bad --again --new-numbers --strings
            --json --quiet --durability="
        ;;
    append) echo "$common --op= --atomic --if-absent --json --quiet --durability=" ;;
    read) echo "$common --limit= --before= --after= --skip= --oldest --top --from= --to= --cursor= --json
            --quiet --partial" ;;
    count | contains) echo "$common --json --partial" ;;
    update) echo "$common --create --durability=" ;;
    edit) echo "$common --id= --durability=" ;;
    remove) echo "$common --id= --where= --limit= --durability=" ;;
    trim) echo "$common --below= --keep= --older-than= --windows-before= --durability=" ;;
    export) echo "$common --relaxed --documents --plain --json --quiet --partial" ;;
    explain) echo "$common --documents --all --json --partial" ;;
    verify) echo "$common --json" ;;
    repair) echo "$common --dry-run --yes --json --durability=" ;;
    status) echo "$common --owners --json" ;;
    stats) echo "$common --top= --json --partial" ;;
    owners) echo "$common --prefix= --limit= --json --quiet --partial" ;;
    threshold) echo "$common --target= --element= --json --quiet --partial" ;;
    scan)
        echo "$common --format= --max-elements= --max-bytes= --max-share= --document-limit=
            --collection-limit= --since= --fail-on= --threads= --collections= --sample= --rate=
            --read-preference= --json --quiet --partial"
        ;;
    plan)
        echo "$common --target= --output= --format= --max-elements= --max-bytes= --max-share=
            --document-limit= --collection-limit= --since= --threads= --collections= --sample= --rate=
            --read-preference= --json --quiet --mode= --partial"
        ;;
    plan-set)
        _spillway_options define | sed 's/ --durability=//'
        echo "--migrate --leave --dry-run"
        ;;
    report)
        echo "$common --output= --target= --format= --max-elements= --max-bytes= --max-share=
            --document-limit= --collection-limit= --since= --threads= --collections= --sample= --rate=
            --read-preference= --quiet --mode= --partial"
        ;;
    migrate)
        echo "$common --execute --rate= --max-latency= --max-lag= --pause-file= --control= --metrics= --threads= --log= --only=
            --finish --undo --yes --json --quiet --durability= --mode="
        ;;
    sweep)
        echo "$common --rate= --max-latency= --max-lag= --pause-file= --control= --metrics= --threads= --log= --watch
            --interval= --give-up= --quiet --durability= --mode="
        ;;
    consolidate)
        echo "$common --execute --rate= --max-latency= --max-lag= --pause-file= --control= --metrics= --chunk-time= --threads= --log=
            --into= --passes= --cut-over --max-pause= --views --finish --undo --yes --json --quiet --mode="
        ;;
    control) echo "$common --json --quiet" ;;
    drop) echo "$common --yes --durability=" ;;
    convert)
        echo "$common --to= --keep= --as= --sort-by= --threshold= --page= --max-bytes= --page-bytes=
            --no-verify --finish --dry-run --yes --json --quiet --durability="
        ;;
    copy)
        echo "$common --threshold= --page= --max-bytes= --page-bytes= --no-verify
            --json --quiet --durability= --partial --mode="
        ;;
    backup) echo "$common --quiet --partial --mode=" ;;
    restore) echo "$common --json --quiet --mode=" ;;
    bench)
        echo "$common --lengths= --large --layouts= --threads= --rounds= --element= --threshold=
            --page= --tune --plots= --clean --json --quiet --durability= --mode="
        ;;
    serve)
        echo "$common --listen= --check --metrics= --show-owners --tls-cert= --tls-key= --tls-ca= --tls-client= --present=
            --max-connections= --max-per-address= --max-workers= --loops= --memory= --max-reply=
            --header-timeout= --drain= --slow-ms="
        ;;
    esac
}

# The values that an option may have, where there are few.
_spillway_values() {
    case $1 in
    --durability) echo 'fsync log' ;;
    --mode) echo '0600 0640 0644' ;;
    --preset) echo 'feed feed-recent sales reviews-separate reviews-subset reviews-bucket gateway' ;;
    --layout) echo 'outlier capped reference subset bucket' ;;
    --window) echo 'hour day week month year field' ;;
    --keep) echo 'newest oldest' ;;
    --order) echo 'oldest-first newest-first' ;;
    --read-preference) echo 'primary primaryPreferred secondary secondaryPreferred nearest' ;;
    --fail-on) echo 'any critical unbounded-array unbounded-map overgrown-index paid-by-array large-document' ;;
    --present) echo 'auto mongos standalone' ;;
    --tls-client) echo 'none ask require' ;;
    --format) echo 'ndjson json csv bson ndjson.gz json.gz csv.gz bson.gz ndjson.zst' ;;
    esac
}

_spillway_names() {
    spillway define "$1" 2>/dev/null | cut -d: -f1
}

_spillway() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    local command=${COMP_WORDS[1]:-} position=0 i store= words
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W "$_spillway_commands --help --version" -- "$word")
        return
    fi
    if [ "$command" = help ]; then
        mapfile -t COMPREPLY < <(compgen -W "$_spillway_commands" -- "$word")
        return
    fi
    # --option=value comes as three words, since = breaks words.
    if [ "$word" = = ]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_spillway_values "$before")")
        return
    fi
    if [ "$before" = = ]; then
        mapfile -t COMPREPLY < <(
            compgen -W "$(_spillway_values "${COMP_WORDS[COMP_CWORD - 2]}")" -- "$word")
        return
    fi
    if [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_spillway_options "$command")" -- "$word")
        [[ ${COMPREPLY[0]:-} == *= ]] && compopt -o nospace 2>/dev/null
        return
    fi
    # A STORE such as mongodb://HOST:PORT/DATABASE is one word, though : and @ break words.
    read -ra words <<<"${COMP_LINE:0:COMP_POINT}x"
    for ((i = 2; i < ${#words[@]} - 1; i++)); do
        case ${words[i]} in
        -?*) ;;
        *)
            position=$((position + 1))
            [ "$position" = 1 ] && store=${words[i]}
            ;;
        esac
    done
    case $position in
    0) compopt -o filenames 2>/dev/null && mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
    1)
        if [ "$command" = backup ] || [ "$command" = copy ]; then
            compopt -o filenames 2>/dev/null
            mapfile -t COMPREPLY < <(compgen -d -- "$word")
        else
            mapfile -t COMPREPLY < <(compgen -W "$(_spillway_names "$store")" -- "$word")
        fi
        ;;
    2)
        if [ "$command" = import ]; then
            compopt -o filenames 2>/dev/null
            mapfile -t COMPREPLY < <(compgen -f -- "$word")
        elif [ "$command" = copy ]; then
            mapfile -t COMPREPLY < <(compgen -W "$(_spillway_names "$store")" -- "$word")
        fi
        ;;
    esac
}

complete -F _spillway spillway
