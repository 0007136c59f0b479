package import HubCore

extension HubRandom {
  /// The same draw each time.
  /// - Parameter unit: What ``HubRandom/unit()`` gives, 0 up to 1; with 1 the greatest there is.
  package static func always(_ unit: Double) -> HubRandom {
    let bits = min(UInt64(unit * 0x1p53), 1 << 53 - 1) << 11
    return HubRandom { bits }
  }
}
