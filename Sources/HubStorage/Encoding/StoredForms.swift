import Foundation
import HubCore
import NotificationHubs

extension PushPlatform {
  /// The number that columns hold.
  var code: Int64 { storedCode }

  init(code: Int64) throws(StoreError) {
    guard let platform = Self.byCode[code] else { throw .corrupt("unknown platform \(code)") }
    self = platform
  }

  private static let byCode = Dictionary(uniqueKeysWithValues: allCases.map { ($0.code, $0) })
}

extension PushChannel {
  /// As ``TargetPage/handles`` has it.
  var stored: String {
    switch self {
    case .handle(let text): text
    case .subscription(let endpoint, let p256dh, let auth): "\(endpoint)\n\(p256dh)\n\(auth)"
    }
  }
}

/// The part of a stored handle that identifies the device at its push service: all of it, or the
/// endpoint of a Web Push subscription.
func handleIdentity(_ stored: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
  let end = stored.firstIndex(of: UInt8(ascii: "\n")) ?? stored.endIndex
  return UnsafeRawBufferPointer(rebasing: stored[..<end])
}

extension Date {
  /// Milliseconds since 1970, as columns hold it; dates beyond any calendar are held at the ends.
  var milliseconds: Int64 {
    let value = (timeIntervalSince1970 * 1000).rounded()
    if value.isNaN { return 0 }
    return Int64(exactly: max(-9e15, min(9e15, value))) ?? 0
  }

  init(milliseconds: Int64) { self.init(timeIntervalSince1970: Double(milliseconds) / 1000) }
}
