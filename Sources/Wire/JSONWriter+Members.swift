#if canImport(FoundationEssentials)
  package import FoundationEssentials
#else
  package import Foundation
#endif

extension JSONWriter {
  /// A document that is one object, with the members that `members` writes.
  package static func object(
    capacity: Int = 512, _ members: (inout JSONWriter) -> Void
  ) -> [UInt8] {
    var writer = JSONWriter(capacity: capacity)
    writer.object(members)
    return writer.bytes
  }

  package mutating func object(_ members: (inout JSONWriter) -> Void) {
    beginObject()
    members(&self)
    endObject()
  }

  /// A member that is an object.
  package mutating func object(_ name: String, _ members: (inout JSONWriter) -> Void) {
    self.name(name)
    object(members)
  }

  /// A member that is an array, with each element written by `write`.
  package mutating func array<Element>(
    _ name: String, _ elements: [Element], _ write: (inout JSONWriter, Element) -> Void
  ) {
    self.name(name)
    beginArray()
    for element in elements { write(&self, element) }
    endArray()
  }

  /// A member that is an array of objects.
  package mutating func objects<Element>(
    _ name: String, _ elements: [Element], _ members: (inout JSONWriter, Element) -> Void
  ) {
    array(name, elements) { writer, element in writer.object { members(&$0, element) } }
  }

  /// A member that is an object of numbers, in the order of their names.
  package mutating func counts(_ name: String, _ counts: [String: Int]) {
    object(name) { writer in
      for (name, count) in counts.sorted(by: { $0.key < $1.key }) { writer.member(name, count) }
    }
  }

  // MARK: Members that are omitted for `nil`

  package mutating func member(_ name: String, _ text: String?) {
    guard let text else { return }
    self.name(name)
    string(text)
  }

  package mutating func member(_ name: String, _ number: Int?) {
    guard let number else { return }
    self.name(name)
    raw(String(number))
  }

  package mutating func member(_ name: String, _ flag: Bool?) {
    guard let flag else { return }
    self.name(name)
    bool(flag)
  }

  /// In UTC with milliseconds.
  package mutating func member(_ name: String, _ date: Date?) {
    guard let date else { return }
    self.name(name)
    string(WireDate.milliseconds(date))
  }

  /// With three decimal places; nothing for values that JSON cannot represent.
  package mutating func member(_ name: String, _ number: Double?) {
    guard let number, number.isFinite, abs(number) < 1e15 else { return }
    self.name(name)
    raw(String((number * 1000).rounded() / 1000))
  }
}
