import { Mark } from '../../ui/state.tsx'

/** Shows how many VMs are available, with a color and a mark. */
export const Stock = ({ text, isEnough }: { text: string; isEnough: boolean }) => (
  <span
    className={`figures inline-flex items-start gap-1 text-sm ${isEnough ? 'text-green-text' : 'text-amber-text'}`}
  >
    <span className="flex h-[18px] items-center">
      <Mark tone={isEnough ? 'good' : 'warn'} />
    </span>
    <span className="min-w-0 leading-[18px]">{text}</span>
  </span>
)
