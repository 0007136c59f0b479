import Synchronization

/// What gateways of the same origin, key or account share, such as connections and tokens: made once
/// per key, gone when no gateway uses it any more, connections included.
final class SharedObjects<Key: Hashable & Sendable, Object: AnyObject & Sendable>: Sendable {
  private struct Reference {
    weak var object: Object?
  }

  private let references = Mutex<[Key: Reference]>([:])

  /// The object of this key, made now if nobody holds one.
  func object<Failure: Error>(
    for key: Key, make: () throws(Failure) -> Object
  ) throws(Failure) -> Object {
    try references.withLock { references throws(Failure) in
      if let object = references[key]?.object { return object }
      references = references.filter { $0.value.object != nil }
      let object = try make()
      references[key] = Reference(object: object)
      return object
    }
  }
}
