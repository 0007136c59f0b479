public import Foundation

/// Why a payload could not be sealed or opened. Never holds keys or payloads.
public enum SecurePushError: LocalizedError, Hashable, CustomStringConvertible {
  /// What came is not a sealed payload, a key, or a wake-up; or was made by a newer version.
  case malformed
  /// It was sealed for a key this device does not have, or no longer: the app was installed again,
  /// or the key was rotated long ago. Fetch the payload by its id, and register the current key.
  case unknownKey
  /// The key fits, but the bytes were changed, or belong to another message or device.
  case doesNotOpen
  /// The ring's stored form cannot be read.
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
