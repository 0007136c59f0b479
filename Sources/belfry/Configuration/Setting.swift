/// A setting. Its key in the file, its variable and its flag derive from one name: `bodyLimit`,
/// `BELFRY_BODY_LIMIT`, `--body-limit`.
struct Setting: Sendable {
  enum Kind: Sendable {
    case text
    /// An integer.
    case integer(ClosedRange<Int>)
    /// Texts, separated by commas in a variable or a flag.
    case list
    /// One of these words.
    case choice([String])
    /// A time in seconds, or with a unit as `30d`; or one of these words.
    case time(ClosedRange<Int>, or: [String])
    /// `true` or `false`; the flag without a value means `true`.
    case flag
  }

  let key: String
  let kind: Kind
  /// The default in the form of a variable; `nil` if there is none.
  let standard: String?
  /// The placeholder in the help.
  let placeholder: String
  let help: String
  /// The comment behind the setting in the example file, short.
  let example: String
  var isSecret = false
  /// Sets the option of the server that the values are for, if it is a single one.
  private(set) var apply: @Sendable (inout HubRuntime.Options, [String]) -> Void = { _, _ in }

  /// `bodyLimit` → `body-limit`.
  private var dashed: String {
    var text = ""
    for letter in key {
      if letter.isUppercase { text += "-" }
      text += letter.lowercased()
    }
    return text
  }
  var flag: String { "--" + dashed }
  var variable: String {
    "BELFRY_" + dashed.uppercased().split(separator: "-").joined(separator: "_")
  }

  /// A value in a form that may be shown to anyone.
  func shown(_ value: String) -> String {
    if isSecret { return "(hidden)" }
    return key == Setting.database.key ? DatabaseAddress.shown(value) : value
  }

  /// The permitted values.
  fileprivate var words: [String] { if case .choice(let words) = kind { words } else { [] } }
}

/// Settings of the server as options of a command.
struct SettingOptions: ParameterGroup {
  private let options: [(setting: Setting, parameter: any Parameter)]

  init(_ settings: [Setting]) {
    options = settings.map { setting in
      if case .flag = setting.kind { return (setting, Flag(setting.flag, setting.help)) }
      let help = setting.help + (setting.standard.map { " (default \($0))" } ?? "")
      let reader = Reader<String>(words: setting.words) { text, _ in text }
      return (setting, Option<String?>(setting.flag, setting.placeholder, help, reader))
    }
  }

  var parameters: [any Parameter] { options.map(\.parameter) }

  /// The given values by setting key, to be validated by a ``Configuration``.
  var given: [String: String] {
    var given: [String: String] = [:]
    for (setting, parameter) in options where parameter.isGiven {
      given[setting.key] = (parameter as? Option<String?>)?.wrappedValue ?? "true"
    }
    return given
  }
}

extension Option {
  /// A single setting, with a default specific to the command.
  init(wrappedValue: Value, _ setting: Setting, _ reader: Reader<Value>) {
    self.init(
      wrappedValue: wrappedValue, setting.flag, setting.placeholder, setting.help, reader)
  }
}

extension Setting {
  /// The source of default values, which the settings only format.
  static let usual = HubRuntime.Options(data: DataDirectory(path: "belfry-data"))

  /// Creates a setting for one option of the server, which has the default.
  init<Value>(
    _ key: String, _ option: any WritableKeyPath<HubRuntime.Options, Value> & Sendable,
    _ form: SettingForm<Value>, placeholder: String = "", help: String, example: String,
    isSecret: Bool = false
  ) {
    self.init(
      key: key, kind: form.kind, standard: form.show(Self.usual[keyPath: option]),
      placeholder: placeholder, help: help, example: example, isSecret: isSecret,
      apply: { options, values in
        guard !values.isEmpty, let value = form.read(values) else { return }
        options[keyPath: option] = value
      })
  }
}
