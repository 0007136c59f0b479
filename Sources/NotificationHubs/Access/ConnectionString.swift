import Wire

/// The address of a namespace and a key to it, in the one-line format that portals show
/// (docs/protocol/sas.md, section 1).
///
/// ```swift
/// let connection = try ConnectionString(
///   "Endpoint=sb://contoso-ns.servicebus.windows.net/;"
///     + "SharedAccessKeyName=DefaultListenSharedAccessSignature;SharedAccessKey=3Zk8…6A=")
/// ```
/// The hub's name is not part of it and is given separately.
public struct ConnectionString: Hashable, Sendable {
  /// The address of the namespace.
  public let endpoint: ServiceEndpoint
  /// The name of the access policy.
  public let keyName: String
  /// The key as text; it is not decoded.
  public let key: String

  /// Creates a connection string from its parts.
  public init(endpoint: ServiceEndpoint, keyName: String, key: String) {
    self.endpoint = endpoint
    self.keyName = keyName
    self.key = key
  }

  /// Parses a connection string. Parts may come in any order, names may have any letter case,
  /// blanks around names and values are ignored, and so are unknown parts.
  ///
  /// - Throws: ``ConnectionStringError`` if a part is missing, malformed or repeated.
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

  /// The whole connection string, including the key: three parts in the order that every client
  /// reads, without a trailing `;`.
  public var text: String {
    "Endpoint=\(endpoint);SharedAccessKeyName=\(keyName);SharedAccessKey=\(key)"
  }
}

extension ConnectionString: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable
{
  /// The connection string without the key; ``text`` includes it.
  public var description: String {
    "Endpoint=\(endpoint);SharedAccessKeyName=\(keyName);SharedAccessKey=…"
  }
  /// The same as ``description``, without the key.
  public var debugDescription: String { description }
  /// A mirror without the key.
  public var customMirror: Mirror {
    Mirror(self, children: ["endpoint": endpoint, "keyName": keyName])
  }
}

/// The error thrown for an invalid connection string. It never contains the text itself, which may
/// hold a key.
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

  /// A sentence that names the fault and the expected format.
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
