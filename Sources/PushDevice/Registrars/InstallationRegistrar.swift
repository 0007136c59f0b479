import Foundation
public import NotificationHubs

/// Writes the installation: the app's backend (``BackendRegistrar``), or the hub itself
/// (``HubRegistrar``).
///
/// Every call is one attempt; ``PushInstallation`` decides about the next one.
public protocol InstallationRegistrar: Sendable {
  /// The address, a change of which leads to a new registration.
  var address: String { get }
  /// Whether only the device of a signed-in user can be registered, and only with that user's
  /// authorization be removed.
  var isForSignedInUsersOnly: Bool { get }

  /// Creates or replaces the installation.
  func save(_ installation: Installation) async throws(RegistrarError)

  /// Deletes the installation; that there is none is not an error.
  /// - Parameter userID: The user whose device it is. With a registrar for signed-in users, their
  ///   sign-in authorizes the request. They may stay signed in: the app has switched pushes off.
  func delete(installation id: String, of userID: String?) async throws(RegistrarError)

  /// Called once the installation of a user who has signed out is deleted: a registrar that keeps
  /// sign-ins ends that of the user. Without effect by default.
  func endSignIn(of userID: String) async throws(RegistrarError)

  /// Reads the installation.
  /// - Returns: `nil` if there is none.
  /// - Throws: ``RegistrarError/Kind/unsupported`` if it cannot be read.
  func installation(_ id: String) async throws(RegistrarError) -> Installation?
}

extension InstallationRegistrar {
  public var isForSignedInUsersOnly: Bool { false }

  public func endSignIn(of userID: String) async throws(RegistrarError) {}

  public func installation(_ id: String) async throws(RegistrarError) -> Installation? {
    throw RegistrarError(.unsupported, "this registrar cannot read installations")
  }
}

/// The error of an attempt to register the device.
public struct RegistrarError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The kinds that the SDK handles differently; later versions may add more.
  public struct Kind: Hashable, Sendable, CustomStringConvertible {
    /// The kind in words.
    public let description: String
    /// No reply, a redirect, 408 or 5xx: tried again with growing delays.
    public static let unreachable = Kind(description: "unreachable")
    /// 429, or 403 or 503 with `Retry-After`: tried again, but not before.
    public static let throttled = Kind(description: "throttled")
    /// 401, also with a fresh token: tried again at the next launch, foreground or change.
    public static let unauthorized = Kind(description: "unauthorized")
    /// 403: the key or the user lacks the right. Tried again like ``unauthorized``.
    public static let forbidden = Kind(description: "forbidden")
    /// 404 or 410: there is no such hub or backend. Tried again like ``unauthorized``.
    public static let notFound = Kind(description: "not found")
    /// 400 and others: the installation itself is refused. Not repeated until it changes.
    public static let rejected = Kind(description: "rejected")
    /// The registrar has no such request.
    public static let unsupported = Kind(description: "unsupported")
  }

  /// The longest explanation that is kept, in characters.
  static let detailLimit = 500

  /// The way in which the SDK handles the error.
  public let kind: Kind
  /// The explanation of hub, backend or system, cut after 500 characters. It has no tokens.
  public let detail: String
  /// The delay that the hub asks for.
  public let retryAfter: Duration?
  /// The error of the layer below, which two equal errors need not share.
  public let cause: (any Error)?

  /// Creates an error.
  public init(
    _ kind: Kind, _ detail: String, retryAfter: Duration? = nil, cause: (any Error)? = nil
  ) {
    self.kind = kind
    // It is stored, and a reply of any size may explain itself.
    self.detail = String(detail.prefix(Self.detailLimit))
    self.retryAfter = retryAfter
    self.cause = cause
  }

  /// The kind of a reply that is not a success.
  public init(
    status: Int, _ detail: String, retryAfter: Duration? = nil, cause: (any Error)? = nil
  ) {
    let kind: Kind =
      switch status {
      case 429: .throttled
      case 403, 503: retryAfter != nil ? .throttled : status == 403 ? .forbidden : .unreachable
      case 401: .unauthorized
      case 404, 410: .notFound
      // A network that asks for its own sign-in redirects.
      case 300...399, 408, 500...599: .unreachable
      default: .rejected
      }
    self.init(kind, detail, retryAfter: retryAfter, cause: cause)
  }

  public static func == (left: RegistrarError, right: RegistrarError) -> Bool {
    left.kind == right.kind && left.detail == right.detail && left.retryAfter == right.retryAfter
  }

  public func hash(into hasher: inout Hasher) {
    hasher.combine(kind)
    hasher.combine(detail)
    hasher.combine(retryAfter)
  }

  public var description: String { detail.isEmpty ? "\(kind)" : "\(kind): \(detail)" }
}

/// An error that says how the registration continues, of a token provider for example. Any other
/// error counts as ``RegistrarError/Kind/unreachable``.
public protocol RegistrarErrorConvertible: Error {
  /// The error as a registrar throws it.
  var registrarError: RegistrarError { get }
}

extension RegistrarError {
  /// Creates the error of an attempt that ended with `error`.
  init(_ error: any Error) {
    switch error {
    case let error as RegistrarError: self = error
    case let error as any RegistrarErrorConvertible: self = error.registrarError
    case let error as NotificationHubError:
      // The kind is the registrar's.
      let detail =
        (error.detail ?? error.status.map { "status \($0)" } ?? error.kind.description)
        + (error.trackingID.map { " [tracking id \($0)]" } ?? "")
      guard let status = error.status else {
        // A request that was never sent is as faulty the next time.
        self.init(error.kind == .unreachable ? .unreachable : .rejected, detail, cause: error)
        return
      }
      self.init(
        status: status, detail, retryAfter: error.retryAfter.map { .seconds($0) }, cause: error)
    default: self.init(.unreachable, Self.text(of: error), cause: error)
    }
  }

  /// The error in words. On Linux, the description of a system's error is a page of debugging.
  static func text(of error: any Error) -> String {
    error is URLError || error is CocoaError ? error.localizedDescription : "\(error)"
  }
}
