import NotificationHubs

/// Derives the id of each push of a notification from the device's handle, so that a repeat is
/// recognisable whatever has become of the registration: an installation that is deleted and
/// written again while a broadcast runs has another number, and the same handle.
///
/// The bytes of the notification's id are folded into two 64-bit states with different starts, one
/// finalizer step (splitmix64, a bijection with full avalanche) a byte; then platform, template and
/// handle, a step for each eight bytes. The same parts give the same id in every process, today and
/// after a restart; that two handles share one is as likely as for random numbers of 128 bits.
/// Changing this changes ids in flight: a repeat across the upgrade would not be recognised.
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

  /// - Parameters:
  ///   - handle: In its stored form; of a Web Push subscription only the endpoint counts.
  ///   - template: ``number(of:)`` of the template; 0 for a native push. A device with two templates
  ///     gets two pushes, which are no repeats of each other.
  func id(
    for handle: some Collection<UInt8>, platform: PushPlatform, template: UInt64 = 0
  ) -> PushID {
    let start = UInt64(platform.ordinal) &+ template
    var high = Self.mix(high ^ start)
    var low = Self.mix(low &+ start &* 0x9E37_79B9_7F4A_7C15)
    let end = handle.firstIndex(of: UInt8(ascii: "\n")) ?? handle.endIndex
    Self.fold(handle[..<end]) { word in
      high = Self.mix(high ^ word)
      low = Self.mix(low &+ word &* 0x9E37_79B9_7F4A_7C15)
    }
    return PushID(high: high, low: low)
  }

  /// A number for what a template says, the same in every process.
  static func number(of template: PushTemplate) -> UInt64 {
    var number: UInt64 = 0x3C6E_F372_FE94_F82B  // fraction of √5
    let headers = template.headers.sorted { $0.key < $1.key }.flatMap { [$0.key, $0.value] }
    for text in [template.body, template.expiry ?? ""] + headers {
      fold(text.utf8) { number = mix(number ^ $0) }
    }
    return number
  }

  /// Hands over eight bytes at a time, and at last what is left with the length.
  private static func fold(_ bytes: some Collection<UInt8>, _ body: (UInt64) -> Void) {
    // All that is folded lies in one piece, but for a text that came from Objective-C.
    if bytes.withContiguousStorageIfAvailable({ fold(UnsafeRawBufferPointer($0), body) }) == nil {
      Array(bytes).withUnsafeBytes { fold($0, body) }
    }
  }

  private static func fold(_ bytes: UnsafeRawBufferPointer, _ body: (UInt64) -> Void) {
    let rest = bytes.count & ~7
    for start in stride(from: 0, to: rest, by: 8) {
      body(UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: start, as: UInt64.self)))
    }
    let last = bytes[rest...].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    body(last ^ UInt64(bytes.count) << 56)
  }

  private static func mix(_ value: UInt64) -> UInt64 {
    var z = value &+ 0x9E37_79B9_7F4A_7C15
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }
}
