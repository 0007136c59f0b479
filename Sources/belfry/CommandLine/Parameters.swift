import Synchronization

/// A parameter of a command: an option, a flag or an argument. It is declared once, as a property
/// of the command, and read as that property's value; parsing, help, completions and the manual use
/// the declaration.
///
/// ```swift
/// @Argument("NAME", "the policy") var name: String
/// @Option("--limit", "N", "at most so many", .integer(1...100)) var limit = 20
/// @Option("--tag", "TAG", "only those with this tag") var tag: String?
/// @Flag("--json", "print one JSON value for scripts") var json
/// ```
protocol Parameter: Sendable {
  var declaration: Declaration { get }
  /// Whether the parameter was given.
  var isGiven: Bool { get }
  /// Sets the value from the given texts: one for each occurrence, none if it was not given.
  /// - Throws: ``UsageError`` for an invalid or missing value.
  func take(_ texts: [String]) throws(UsageError)
}

/// The declaration of a parameter: its form and purpose.
struct Declaration: Sendable {
  /// The name: with its dashes (`--tags`); for an argument its placeholder (`ID`, or `[FILE]`).
  let name: String
  /// The placeholder of an option's value (`EXPR`); `nil` for flags and arguments.
  var value: String?
  let help: String
  /// Whether it may be given more than once.
  var repeats = false
  /// The permitted values; empty for free text.
  var words: [String] = []

  var isArgument: Bool { !name.hasPrefix("-") }
  /// The form shown in the help.
  var shown: String { name + (value.map { " " + $0 } ?? "") }
}

/// Parameters that several commands share.
protocol ParameterGroup: Sendable {
  var parameters: [any Parameter] { get }
  /// The common note in the help of these commands; empty for none.
  var note: String { get }
}

extension ParameterGroup {
  var parameters: [any Parameter] { declaredParameters(of: self) }
  var note: String { "" }
}

/// The parameters among a value's properties, in order.
func declaredParameters(of value: Any) -> [any Parameter] {
  Mirror(reflecting: value).children.flatMap { child -> [any Parameter] in
    switch child.value {
    case let parameter as any Parameter: [parameter]
    case let group as any ParameterGroup: group.parameters
    default: []
    }
  }
}

/// The notes of the groups among a value's properties, including nested groups.
func declaredNotes(of value: Any) -> [String] {
  Mirror(reflecting: value).children.flatMap { child -> [String] in
    guard let group = child.value as? any ParameterGroup else { return [] }
    return (group.note.isEmpty ? [] : [group.note]) + declaredNotes(of: group)
  }
}

/// The value of a parameter. A reference, so that parsing can set it in an existing command.
private final class Slot<Value: Sendable>: Sendable {
  private let state: Mutex<(value: Value?, isGiven: Bool)>

  init(_ value: Value?) { state = Mutex((value, false)) }

  var isGiven: Bool { state.withLock { $0.isGiven } }

  var value: Value {
    guard let value = state.withLock({ $0.value }) else {
      preconditionFailure("a parameter is read before the words are parsed")
    }
    return value
  }

  func set(_ value: Value) { state.withLock { $0 = (value, true) } }
}

/// An option with a value.
///
/// If it is not given, it has its default value; an optional without a default is `nil`, and any
/// other type is required. An array accepts it several times.
@propertyWrapper
struct Option<Value: Sendable>: Parameter {
  let declaration: Declaration
  private let slot: Slot<Value>
  private let isRequired: Bool
  private let read: @Sendable ([String]) throws(UsageError) -> Value

  private init(
    _ declaration: Declaration, standard: Value?,
    _ read: @escaping @Sendable ([String]) throws(UsageError) -> Value
  ) {
    self.declaration = declaration
    self.read = read
    slot = Slot(standard)
    isRequired = standard == nil
  }

  var wrappedValue: Value { slot.value }
  var projectedValue: Self { self }
  var isGiven: Bool { slot.isGiven }

  func take(_ texts: [String]) throws(UsageError) {
    if !texts.isEmpty {
      slot.set(try read(texts))
    } else if isRequired {
      throw UsageError("\(declaration.name) is missing")
    }
  }
}

extension Option {
  init<T>(_ name: String, _ value: String, _ help: String, _ reader: Reader<T>) where Value == T? {
    let declaration = Declaration(name: name, value: value, help: help, words: reader.words)
    self.init(declaration, standard: .some(nil)) { texts throws(UsageError) in
      try reader.read(texts[0], name)
    }
  }

  init(_ name: String, _ value: String, _ help: String) where Value == String? {
    self.init(name, value, help, .text)
  }

  init(
    wrappedValue: Value, _ name: String, _ value: String, _ help: String, _ reader: Reader<Value>
  ) {
    let declaration = Declaration(
      name: name, value: value, help: "\(help) (default \(reader.show(wrappedValue)))",
      words: reader.words)
    self.init(declaration, standard: wrappedValue) { texts throws(UsageError) in
      try reader.read(texts[0], name)
    }
  }

  init(wrappedValue: Value, _ name: String, _ value: String, _ help: String)
  where Value == String {
    self.init(wrappedValue: wrappedValue, name, value, help, .text)
  }

  /// Creates a required option.
  init(required name: String, _ value: String, _ help: String, _ reader: Reader<Value>) {
    let declaration = Declaration(name: name, value: value, help: help, words: reader.words)
    self.init(declaration, standard: nil) { texts throws(UsageError) in
      try reader.read(texts[0], name)
    }
  }

  /// Creates an option that may be repeated.
  init<T>(repeated name: String, _ value: String, _ help: String, _ reader: Reader<T>)
  where Value == [T] {
    let declaration = Declaration(
      name: name, value: value, help: help, repeats: true, words: reader.words)
    self.init(declaration, standard: []) { texts throws(UsageError) in
      var values: [T] = []
      for text in texts { values.append(try reader.read(text, name)) }
      return values
    }
  }

  init(repeated name: String, _ value: String, _ help: String) where Value == [String] {
    self.init(repeated: name, value, help, .text)
  }
}

/// An option without a value.
@propertyWrapper
struct Flag: Parameter {
  let declaration: Declaration
  private let slot = Slot(false)

  init(_ name: String, _ help: String) { declaration = Declaration(name: name, help: help) }

  var wrappedValue: Bool { slot.value }
  var projectedValue: Self { self }
  var isGiven: Bool { slot.isGiven }

  func take(_ texts: [String]) { if !texts.isEmpty { slot.set(true) } }
}

/// A positional argument after the command's name.
@propertyWrapper
struct Argument<Value: Sendable>: Parameter {
  let declaration: Declaration
  private let slot: Slot<Value>
  private let isRequired: Bool
  private let read: @Sendable (String) throws(UsageError) -> Value

  init(_ name: String, _ help: String, _ reader: Reader<Value>) {
    declaration = Declaration(name: name, help: help, words: reader.words)
    slot = Slot(nil)
    isRequired = true
    read = { text throws(UsageError) in try reader.read(text, name) }
  }

  init(_ name: String, _ help: String) where Value == String { self.init(name, help, .text) }

  /// Creates an optional argument.
  init(_ name: String, _ help: String) where Value == String? {
    declaration = Declaration(name: "[\(name)]", help: help)
    slot = Slot(.some(nil))
    isRequired = false
    read = { $0 }
  }

  var wrappedValue: Value { slot.value }
  var projectedValue: Self { self }
  var isGiven: Bool { slot.isGiven }

  func take(_ texts: [String]) throws(UsageError) {
    if let text = texts.first {
      slot.set(try read(text))
    } else if isRequired {
      throw UsageError("\(declaration.name) is missing")
    }
  }
}

/// Invalid arguments; exit code 64.
struct UsageError: Error {
  let message: String
  init(_ message: String) { self.message = message }

  /// - Throws: An error if more than one of these was given.
  static func check(exclusive parameters: any Parameter...) throws(UsageError) {
    let given = parameters.filter(\.isGiven).map(\.declaration.name)
    if given.count > 1 {
      throw UsageError(given.joined(separator: " and ") + " exclude each other")
    }
  }
}

extension Array where Element == any Parameter {
  /// Sets the parameters from the arguments: `--name value` and `--name=value` are equivalent, and
  /// `--` ends the options.
  ///
  /// - Throws: ``UsageError`` for an unknown option; for a value that is missing, superfluous or
  ///   invalid; for an option given twice; or for too many or too few arguments.
  func parse(_ words: some Sequence<String>) throws(UsageError) {
    var values: [String: [String]] = [:]
    var arguments: [String] = []
    var rest = words.map(\.self)[...]
    var optionsEnded = false
    while let word = rest.popFirst() {
      guard !optionsEnded, word.hasPrefix("-"), word != "-" else {
        arguments.append(word)
        continue
      }
      if word == "--" {
        optionsEnded = true
        continue
      }
      let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      let option = try self.option(String(parts[0]))
      var value = parts.count == 2 ? String(parts[1]) : nil
      if option.value != nil {
        if value == nil { value = rest.popFirst() }
        if value == nil { throw UsageError("\(option.name) needs a value: \(option.shown)") }
      } else if value != nil {
        throw UsageError("\(option.name) takes no value")
      }
      if values[option.name] != nil && !option.repeats {
        throw UsageError("\(option.name) is given twice")
      }
      values[option.name, default: []].append(value ?? "")
    }
    for parameter in self {
      let declaration = parameter.declaration
      if !declaration.isArgument {
        try parameter.take(values[declaration.name] ?? [])
      } else if arguments.isEmpty {
        try parameter.take([])
      } else {
        try parameter.take([arguments.removeFirst()])
      }
    }
    if let word = arguments.first { throw UsageError("unexpected '\(word)'") }
  }

  private func option(_ name: String) throws(UsageError) -> Declaration {
    let options = map(\.declaration).filter { !$0.isArgument }
    if let option = options.first(where: { $0.name == name }) { return option }
    throw UsageError(
      "unknown option '\(name)'" + Suggestion.text(for: name, among: options.map(\.name)))
  }
}
