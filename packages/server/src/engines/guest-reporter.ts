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
    $2 == "gpu_recovery_action" { recovery = tolower($3); gsub(/[^a-z ]/, "", recovery); if (recovery != "" && recovery != "na") fields = fields ",\\"recovery\\":\\"" recovery "\\"" }
    $2 == "/gpu" { inside = 0; printf "%s{\\"uuid\\":\\"%s\\",\\"name\\":\\"%s\\"%s}", n++ ? "," : "", uuid, model, fields }'
}

# Prints a JSON object for each of the last XID errors in the kernel log. "gpu" is the number of the GPU in
# the order of PCI addresses; "position" is the time of the message in microseconds since the boot.
list_xids() {
  addresses=
  for device in /sys/bus/pci/devices/*; do
    vendor= class=
    read -r vendor <"$device/vendor" 2>/dev/null
    read -r class <"$device/class" 2>/dev/null
    case "$vendor $class" in
      '0x10de 0x0300'* | '0x10de 0x0302'*) address=\${device##*/} addresses="$addresses \${address%.*}" ;;
    esac
  done
  dmesg 2>/dev/null | grep 'NVRM: Xid (PCI:' | tail -n 16 | awk -v addresses="$addresses" '
    BEGIN { count = split(addresses, known, " ") }
    match($0, /PCI:[0-9a-fA-F:]+/) {
      address = tolower(substr($0, RSTART + 4, RLENGTH - 4))
      rest = substr($0, RSTART + RLENGTH); gsub(/^[^0-9]*/, "", rest); xid = rest + 0
      line = $0; gsub(/^[^0-9]*/, "", line)
      # A guest whose only GPU has left the bus shows no GPU.
      if (count == 0) { count = 1; known[1] = address }
      for (i = 1; i <= count; i++) if (known[i] == address)
        printf "%s{\\"gpu\\":%d,\\"xid\\":%d,\\"position\\":%.0f}", n++ ? "," : "", i - 1, xid, line * 1000000
    }'
}

read -r boot </proc/sys/kernel/random/boot_id

# Counts established connections to port 22 (0x0016).
count_sessions() {
  cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | awk '$4 == "01" && $2 ~ /:0016$/ { n++ } END { print n + 0 }'
}

while :; do
  printf '{"slipway_guest":1,"boot":"%s","ssh_sessions":%s,"gpus":[%s],"xids":[%s]}\\n' \\
    "$boot" "$(count_sessions)" "$(list_gpus)" "$(list_xids)" >"$port"
  sleep 60
done
`
