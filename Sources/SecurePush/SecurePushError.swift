public import Foundation

/// The error for a payload that could not be sealed or opened. It never contains keys or payloads.
public enum SecurePushError: LocalizedError, Hashable, CustomStringConvertible {
  /// The input is not a sealed payload, a key, or a wake-up; or a newer version made it.
  case malformed
  /// The payload was sealed for a key that this device does not have or no longer has: the app was
  /// reinstalled, or the key was rotated long ago. Fetch the payload by its id, and register the
  /// current key.
  case unknownKey
  /// The key matches, but the bytes were modified, or belong to another message or device.
  case doesNotOpen
  /// The stored form of the ring cannot be read.
  case damagedKeyRing

  public var errorDescription: String? { description }
  public var description: String {
    switch self {
    case .malformed:
      "not in the form of secure push, or made by a newer version of it"
    case .unknownKey:
      "sealed for another key than this device's: fetch the message by its id and register the "
        + "device's current public key"
    case .doesNotOpen:
      "the sealed payload does not open: it was changed on its way, or was made for another "
        + "device or message"
    case .damagedKeyRing:
      "the stored keys cannot be read: make a new key ring and register its public key"
    }
  }
}
