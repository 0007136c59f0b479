import Foundation
import HubCore
import NotificationHubs

extension PushPlatform {
  /// The number that columns hold; never reassign one.
  var code: Int64 {
    switch self {
    case .apns: 1
    case .wns: 2
    case .mpns: 3
    case .gcm: 4
    case .fcmv1: 5
    case .adm: 6
    case .baidu: 7
    case .browser: 8
    case .xiaomi: 9
    }
  }

  init(code: Int64) throws(StoreError) {
    switch code {
    case 1: self = .apns
    case 2: self = .wns
    case 3: self = .mpns
    case 4: self = .gcm
    case 5: self = .fcmv1
    case 6: self = .adm
    case 7: self = .baidu
    case 8: self = .browser
    case 9: self = .xiaomi
    default: throw .corrupt("unknown platform \(code)")
    }
  }
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
