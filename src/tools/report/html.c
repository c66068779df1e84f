/* HTML of a page: its style, and texts with any characters. */
#include "tools/report/report.h"

#include "tools/report/svg.h"
#include "util/text.h"

#include <bson/bson.h>

/* Values of the page's own variables; svg.c has those that it shares with pictures. */
static const char light[] = "--line:#bbb;--panel:#f4f4f4;--link:#00507f;--warning:#c77700;"
                            "--critical:#a40000;--on-critical:#fff;--badge:#ffe3b0;"
                            "--on-badge:#4a2c00;";
static const char dark[] = "--line:#565c64;--panel:#22262b;--link:#86c5f0;--warning:#e0a040;"
                           "--critical:#ff8a80;--on-critical:#2b0000;--badge:#5a4210;"
                           "--on-badge:#ffe3b0;";

/*
 * A screen of up to 44rem has no columns, and folds what has the class fold. A wider screen and
 * paper show it whole; an old browser, which does not know ::details-content, folds it there, too.
 */
static const char style[] =
    "*{box-sizing:border-box}\n"
    "body{margin:0 auto;padding:1rem 1.25rem 3rem;max-width:72rem;background:var(--paper);"
    "color:var(--ink);font:16px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',"
    "Arial,sans-serif}\n"
    "h1{font-size:1.6rem;line-height:1.25;margin:.5rem 0}\n"
    "h2{font-size:1.3rem;margin:2rem 0 .75rem;border-bottom:2px solid var(--ink)}\n"
    "h3{font-size:1.05rem;margin:0 0 .25rem;overflow-wrap:anywhere}\n"
    "h4,summary{font-size:1rem;font-weight:600;margin:.75rem 0 .25rem}\n"
    "summary{cursor:pointer}\n"
    "p,ul,ol{margin:.4rem 0}ul,ol{padding-left:1.3rem}\n"
    "a{color:var(--link)}dfn{font-weight:600;font-style:normal}\n"
    "code,pre{font-family:ui-monospace,'SF Mono',Menlo,Consolas,'DejaVu Sans Mono',monospace;"
    "font-size:.92em}\n"
    "code{overflow-wrap:anywhere}\n"
    "pre{background:var(--panel);border:1px solid var(--faint);padding:.6rem;white-space:pre-wrap;"
    "overflow-wrap:anywhere;margin:.4rem 0}pre span{white-space:nowrap}\n"
    ".names,.meta,figcaption,footer{color:var(--soft);font-size:.92rem}\n"
    ".tiles{display:flex;flex-wrap:wrap;gap:.75rem;margin:1rem 0;padding:0;list-style:none}\n"
    ".tiles li{border:1px solid var(--line);border-radius:.4rem;padding:.4rem .9rem;"
    "min-width:8rem}\n"
    ".tiles b{display:block;font-size:1.35rem;line-height:1.3}\n"
    "nav li{overflow-wrap:anywhere}\n"
    "nav .critical::marker{color:var(--critical);font-weight:700}\n"
    "article{border:1px solid var(--line);border-left:6px solid var(--warning);"
    "border-radius:.3rem;padding:.75rem 1rem;margin:0 0 1rem}\n"
    "article.critical{border-left-color:var(--critical)}\n"
    ".badge{display:inline-block;padding:0 .5rem;border-radius:.25rem;background:var(--badge);"
    "color:var(--on-badge);font-size:.85rem}\n"
    ".critical .badge{background:var(--critical);color:var(--on-critical)}\n"
    "table{border-collapse:collapse;width:100%;font-size:.92rem;margin:.5rem 0}\n"
    "th,td{text-align:right;padding:.25rem 0 .25rem .9rem;border-bottom:1px solid var(--faint);"
    "vertical-align:top}\n"
    "td:nth-child(n+2):nth-child(-n+4){white-space:nowrap}\n"
    "th:first-child,td:first-child{text-align:left;padding-left:0;overflow-wrap:anywhere;"
    "min-width:8rem}\n"
    "@media screen and (max-width:44rem){table,tbody,tr,td{display:block}thead{display:none}"
    "tr{border-bottom:1px solid var(--line);padding:.35rem 0}"
    "td{border:0;padding:.1rem 0;overflow-wrap:anywhere}td:empty{display:none}"
    "td[data-label]{display:flex;justify-content:space-between;gap:1rem}"
    "td[data-label]::before{content:attr(data-label);color:var(--soft);flex:none}"
    "td:first-child{min-width:0;font-weight:600}"
    ".tiles{gap:.4rem}.tiles li{min-width:0;padding:.2rem .6rem}.tiles b{font-size:1.1rem}}\n"
    "@media (min-width:44.001rem),print{@supports selector(::details-content){"
    ".fold::details-content{content-visibility:visible;display:block;height:auto}"
    "section>.fold>summary{display:none}article .fold>summary{list-style:none;cursor:auto}}}\n"
    ".plots{margin:0 0 1.5rem}\n"
    ".figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,26rem),1fr));"
    "gap:1rem}\n"
    "figure{margin:0;border:1px solid var(--faint);border-radius:.3rem;padding:.5rem;"
    "max-width:36rem}\n"
    "figure svg{display:block;width:100%;height:auto}\n"
    "footer{border-top:1px solid var(--line);margin-top:2rem;padding-top:.5rem}\n"
    "@media print{body{max-width:none;padding:0;font-size:10.5pt}a{color:inherit;"
    "text-decoration:none}figure,tr,p,li,pre{break-inside:avoid}h2,h3,h4,thead{"
    "break-after:avoid}table{font-size:9pt}"
    ".figures{grid-template-columns:1fr 1fr}*{print-color-adjust:exact;"
    "-webkit-print-color-adjust:exact}}\n"
    "@page{margin:15mm}\n";

void spill_html_style(FILE *to)
{
    fprintf(to,
            "<style>\n:root{color-scheme:light dark;%s%s}\n"
            "@media screen and (prefers-color-scheme:dark){:root{%s%s}}\n%s%s</style>",
            spill_svg_light, light, spill_svg_dark, dark, style, spill_svg_style);
}

/* ---- texts ----------------------------------------------------------------------------------- */

static void put_escaped(FILE *to, const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '<':
            fputs("&lt;", to);
            break;
        case '>':
            fputs("&gt;", to);
            break;
        case '&':
            fputs("&amp;", to);
            break;
        case '"':
            fputs("&quot;", to);
            break;
        case '\'':
            fputs("&#39;", to);
            break;
        default:
            putc(*text, to);
        }
    }
}

void spill_html_text(FILE *to, const char *text)
{
    char *visible = spill_visible_text(text);
    put_escaped(to, visible);
    bson_free(visible);
}

void spill_html_name(FILE *to, const char *name)
{
    fputs("<bdi><code>", to);
    spill_html_text(to, name);
    fputs("</code></bdi>", to);
}

void spill_html_place(FILE *to, const char *collection, const char *path)
{
    spill_html_name(to, collection);
    if (path) {
        fputs(": ", to);
        spill_html_name(to, path);
    }
}

void spill_html_value(FILE *to, const spill_value_t *value)
{
    char *json = spill_value_to_json(value, false);
    spill_html_name(to, json ? json : "?");
    bson_free(json);
}

void spill_html_cell(FILE *to, const char *label, const char *text)
{
    fprintf(to, "<td data-label=\"%s\">%s</td>", label, text);
}
