/// Which of a push service's two worlds a handle lives in, as seen from the hub's credential: APNs
/// keeps the devices of development builds apart from all others.
package enum PushEnvironment: UInt8, Sendable {
  /// The one that the credential names.
  case own = 0
  /// The other one.
  case other = 1
}
