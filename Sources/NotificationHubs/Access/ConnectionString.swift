import Wire

/// Where a namespace is and a key to it, in the one line that portals show (docs/protocol/sas.md,
/// section 1).
///
/// ```swift
/// let connection = try ConnectionString(
///   "Endpoint=sb://contoso-ns.servicebus.windows.net/;"
///     + "SharedAccessKeyName=DefaultListenSharedAccessSignature;SharedAccessKey=3Zk8…6A=")
/// ```
/// The name of the hub is given separately.
public struct ConnectionString: Hashable, Sendable {
  public let endpoint: ServiceEndpoint
  /// The name of the access policy.
  public let keyName: String
  /// The key as text; it is not decoded.
  public let key: String

  public init(endpoint: ServiceEndpoint, keyName: String, key: String) {
    self.endpoint = endpoint
    self.keyName = keyName
    self.key = key
  }

  /// Reads a connection string: parts in any order, names in any letter case, blanks round names
  /// and values, other parts passed over.
  public init(_ text: String) throws(ConnectionStringError) {
    var parts: [String: String] = [:]
    let segments = text.trimmingBlanks.split(separator: ";", omittingEmptySubsequences: true)
    for (index, segment) in segments.enumerated() {
      guard let equals = segment.firstIndex(of: "=") else {
        throw ConnectionStringError(fault: .malformedPart(number: index + 1))
      }
      let name = segment[..<equals].lowercased().trimmingBlanks
      let value = segment[segment.index(after: equals)...].trimmingBlanks
      guard parts.updateValue(value, forKey: name) == nil else {
        throw ConnectionStringError(fault: .repeatedPart(number: index + 1))
      }
    }
    func part(_ name: String) throws(ConnectionStringError) -> String {
      guard let value = parts[name.lowercased()], !value.isEmpty else {
        throw ConnectionStringError(fault: .missing(name))
      }
      return value
    }
    let endpoint = try part("Endpoint")
    guard let parsed = ServiceEndpoint(parsing: endpoint) else {
      throw ConnectionStringError(fault: .invalidEndpoint(endpoint))
    }
    self.init(
      endpoint: parsed, keyName: try part("SharedAccessKeyName"), key: try part("SharedAccessKey"))
  }

  /// The whole connection string, key included: three parts in the order that every client reads,
  /// without a `;` at the end.
  public var text: String {
    "Endpoint=\(endpoint);SharedAccessKeyName=\(keyName);SharedAccessKey=\(key)"
  }
}

extension ConnectionString: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable
{
  /// Without the key; ``text`` has it.
  public var description: String {
    "Endpoint=\(endpoint);SharedAccessKeyName=\(keyName);SharedAccessKey=…"
  }
  public var debugDescription: String { description }
  public var customMirror: Mirror {
    Mirror(self, children: ["endpoint": endpoint, "keyName": keyName])
  }
}

/// Why a text is no connection string. It never holds the text itself, which may hold a key.
public struct ConnectionStringError: Error, Hashable, Sendable, CustomStringConvertible {
  enum Fault: Hashable, Sendable {
    case missing(String)
    case malformedPart(number: Int)
    case repeatedPart(number: Int)
    case invalidEndpoint(String)
  }

  let fault: Fault

  /// The name of the part that is missing, if that is the fault.
  public var missingPart: String? {
    if case .missing(let name) = fault { name } else { nil }
  }

  public var description: String {
    switch fault {
    case .missing(let name):
      "The connection string has no '\(name)' part. It must read "
        + "Endpoint=sb://HOST/;SharedAccessKeyName=NAME;SharedAccessKey=KEY."
    case .malformedPart(let number):
      "Part \(number) of the connection string has no '='. Each part must read NAME=VALUE."
    case .repeatedPart(let number):
      "Part \(number) of the connection string repeats an earlier one. Give each part once."
    case .invalidEndpoint(let endpoint):
      "The endpoint '\(endpoint)' of the connection string must read sb://HOST/ or sb://HOST:PORT/."
    }
  }
}
