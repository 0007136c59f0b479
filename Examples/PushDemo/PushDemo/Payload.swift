import Foundation

/// A push's payload as the bytes that `PushDemo` reads.
enum Payload {
  /// - Returns: `nil` for a dictionary that JSON cannot hold.
  static func json(_ userInfo: [AnyHashable: Any]) -> Data? {
    guard JSONSerialization.isValidJSONObject(userInfo) else { return nil }
    return try? JSONSerialization.data(withJSONObject: userInfo)
  }
}
