/// Derives the id of each push of a notification.
///
/// The 36 to 60 bytes of the notification's id are folded into two 64-bit states with different
/// starts, one finalizer step (splitmix64, a bijection with full avalanche) a byte. A push's id is
/// then `mix(high ^ mix(registration))`, `mix(low + registration · φ)`: each half is a bijection of
/// the registration's number, so no two pushes of a notification share an id, and the same pair
/// gives the same id in every process, today and after a restart. Changing this changes ids in
/// flight: a repeat across the upgrade would not be recognised.
struct PushIDSeed: Sendable {
  private let high: UInt64
  private let low: UInt64

  init(_ notification: NotificationID) {
    var high: UInt64 = 0x6A09_E667_F3BC_C908  // fraction of √2
    var low: UInt64 = 0xBB67_AE85_84CA_A73B  // fraction of √3
    for byte in notification.rawValue.utf8 {
      high = Self.mix(high ^ UInt64(byte))
      low = Self.mix(low &+ UInt64(byte))
    }
    self.high = high
    self.low = low
  }

  func id(for registration: RegistrationID) -> PushID {
    let number = UInt64(bitPattern: registration)
    return PushID(
      high: Self.mix(high ^ Self.mix(number)),
      low: Self.mix(low &+ number &* 0x9E37_79B9_7F4A_7C15))
  }

  private static func mix(_ value: UInt64) -> UInt64 {
    var z = value &+ 0x9E37_79B9_7F4A_7C15
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }
}
