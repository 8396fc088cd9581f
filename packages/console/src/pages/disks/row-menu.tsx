import type { Disk } from '@slipway/sdk'
import { protectionReason } from '../../features/annotations.tsx'
import { IconButton } from '../../ui/button.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Menu } from '../../ui/menu.tsx'

interface RowMenuProps {
  disk: Disk
  whyNot: string | undefined
  /** Why a disk that is being changed cannot be changed again. */
  busy: string | undefined
  onAsk: (what: 'edit' | 'grow' | 'delete') => void
}

/** A row's menu, with the actions that the disk allows. */
export function RowMenu({ disk, whyNot, busy, onAsk }: RowMenuProps) {
  const whyKept = deleteProblem(disk)
  return (
    <Menu
      label={`Actions for ${disk.name}`}
      header={whyNot ?? busy ?? (whyKept && `Cannot be deleted. ${whyKept}`)}
      trigger={<IconButton label={`Actions for ${disk.name}`} icon={<Icon name="ellipsis" size={16} />} />}
      entries={[
        ...(whyNot
          ? []
          : [
              {
                key: 'edit',
                label: 'Edit',
                icon: <Icon name="pencil" size={14} />,
                onSelect: () => onAsk('edit'),
              },
            ]),
        ...(whyNot || busy
          ? []
          : [
              {
                key: 'grow',
                label: 'Resize',
                icon: <Icon name="hard-drive" size={14} />,
                onSelect: () => onAsk('grow'),
              },
            ]),
        ...(whyNot || busy || whyKept
          ? []
          : [
              {
                key: 'delete',
                label: 'Delete',
                icon: <Icon name="trash" size={14} />,
                isDanger: true,
                hasSeparator: true,
                onSelect: () => onAsk('delete'),
              },
            ]),
      ]}
    />
  )
}

/** Returns why a disk cannot be deleted; undefined if it can. */
function deleteProblem(disk: Disk): string | undefined {
  if (disk.attached_to.some(({ vm_deleted }) => vm_deleted))
    return 'Its VM was deleted while the host was down. Wait until the host is back.'
  return disk.attached_to.length > 0 ? 'Detach the disk first.' : protectionReason(disk)
}
