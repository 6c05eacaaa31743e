#!/bin/sh
# Builds echarts.min.js anew, from the versions in package.json: needs npm and its registry.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$here/package.json" "$here/entry.js" "$work"
cd "$work"
npm install --no-audit --no-fund --silent
npx esbuild entry.js --bundle --minify --format=iife --global-name=echarts --target=es2020 --legal-comments=none \
    --define:process.env.NODE_ENV='"production"' --banner:js="/* Apache ECharts 6.1.0, Apache-2.0; zrender 6.1.0, BSD-3-Clause; tslib, 0BSD */" --outfile=echarts.min.js
cp echarts.min.js node_modules/echarts/LICENSE node_modules/echarts/NOTICE node_modules/echarts/licenses/LICENSE-d3 "$here"
cp node_modules/zrender/LICENSE "$here/LICENSE-zrender"
