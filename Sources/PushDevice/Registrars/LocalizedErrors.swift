public import Foundation

// Makes `localizedDescription`, which alerts and logs show, equal to `description`; the default is
// "The operation could not be completed".

extension RegistrarError: LocalizedError {
  /// The same as ``description``.
  public var errorDescription: String? { description }
}

extension StorageError: LocalizedError {
  /// The same as ``description``.
  public var errorDescription: String? { description }
}

extension NotRegistered: LocalizedError {
  /// The same as ``description``.
  public var errorDescription: String? { description }
}
