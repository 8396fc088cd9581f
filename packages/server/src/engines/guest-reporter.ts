/** The virtio-serial port on which a guest reports to its host. */
export const guestPort = 'org.slipway.guest.0'

/**
 * The reporter in the guest. It writes one line of JSON a minute; `parseGuestReport` reads it. It needs sh, awk and
 * nvidia-smi, whose XML has one element on each line.
 */
export const guestReporter = `#!/bin/sh
# slipway-guest: reports the GPUs and SSH sessions of this VM to its host, once a minute.
# Install it as /usr/sbin/slipway-guest and start it at boot, as root.
port=
for file in /sys/class/virtio-ports/*/name; do
  name=
  read -r name <"$file" 2>/dev/null
  [ "$name" = ${guestPort} ] && port=\${file%/name} && port=/dev/\${port##*/}
done
[ -n "$port" ] || exec sleep 86400

# Prints a JSON object for each GPU, separated by commas. Values that are not available are left out.
list_gpus() {
  nvidia-smi -q -x 2>/dev/null | awk -F '[<>]' '
    function add(name, value) {
      if (value ~ /^[0-9.]+$/ && !(name in seen)) { seen[name] = 1; fields = fields ",\\"" name "\\":" value + 0 }
    }
    $2 ~ /^gpu id=/ { split("", seen); fields = ""; uuid = ""; model = ""; inside = 1 }
    !inside { next }
    $2 ~ /^(fb_memory_usage|clocks|gpu_power_readings|power_readings|temperature|utilization|remapped_rows)$/ { section = $2 }
    $2 == "/" section { section = "" }
    { split($3, part, " "); value = part[1] }
    $2 == "uuid" { uuid = $3; gsub(/[^A-Za-z0-9-]/, "", uuid) }
    $2 == "product_name" { model = $3; gsub(/[^A-Za-z0-9 ._-]/, "", model) }
    section == "utilization" && $2 == "gpu_util" { add("DCGM_FI_DEV_GPU_UTIL", value) }
    section == "fb_memory_usage" && $2 == "used" { add("DCGM_FI_DEV_FB_USED", value) }
    section == "fb_memory_usage" && $2 == "free" { add("DCGM_FI_DEV_FB_FREE", value) }
    section == "temperature" && $2 == "gpu_temp" { add("DCGM_FI_DEV_GPU_TEMP", value) }
    section ~ /power_readings/ && $2 ~ /^(average_)?power_draw$/ { add("DCGM_FI_DEV_POWER_USAGE", value) }
    section == "clocks" && $2 == "sm_clock" { add("DCGM_FI_DEV_SM_CLOCK", value) }
    $2 == "remapped_row_unc" { add("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", value) }
    $2 == "remapped_row_failure" { add("DCGM_FI_DEV_ROW_REMAP_FAILURE", value == "Yes" ? 1 : value == "No" ? 0 : "") }
    $2 == "/gpu" { inside = 0; printf "%s{\\"uuid\\":\\"%s\\",\\"name\\":\\"%s\\"%s}", n++ ? "," : "", uuid, model, fields }'
}

# Established connections to port 22 (0016).
count_sessions() {
  cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | awk '$4 == "01" && $2 ~ /:0016$/ { n++ } END { print n + 0 }'
}

while :; do
  printf '{"slipway_guest":1,"ssh_sessions":%s,"gpus":[%s]}\\n' "$(count_sessions)" "$(list_gpus)" >"$port"
  sleep 60
done
`
